// The state of a device in Node.js: a file for its owner alone, which is replaced as a whole.

import * as fs from "node:fs";
import { randomUUID } from "node:crypto";
import { dirname, join } from "node:path";

const PATIENCE_MS = 30_000;
const POLL_MS = 20;

export class File {
  #where;
  #path;
  #refuse;

  constructor(where, refuse) {
    [this.#where, this.#refuse] = [where, refuse];
  }

  // Alone among all processes of this machine. The lock is a link to a file that says whose it is: it is never without.
  async locked(run) {
    // A directory is what version 0.1 had: the file is in it.
    const old = fs.statSync(this.#where, { throwIfNoEntry: false })?.isDirectory();
    this.#path = old ? join(this.#where, "device.json") : this.#where;
    const [lock, name] = [`${this.#path}.lock`, randomUUID()];
    fs.writeFileSync(`${lock}-${name}`, `${process.pid} ${name}`, { mode: 0o600, flag: "wx" });
    try {
      for (let waited = 0; !linked(`${lock}-${name}`, lock); waited += POLL_MS) {
        if (waited >= PATIENCE_MS) {
          const hint = `wait, or stop it; if there is none, delete ${lock}`;
          this.#refuse("state", `another process uses ${this.#where} and does not finish`, hint);
        }
        breakLock(lock);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    } finally {
      fs.unlinkSync(`${lock}-${name}`);
    }
    try {
      return await run();
    } finally {
      fs.unlinkSync(lock);
    }
  }

  // The stored text; null: there is none yet.
  read() {
    if (!fs.existsSync(this.#path)) return this.#old().length ? fs.readFileSync(this.#old()[0], "utf8") : null;
    this.#old().forEach(erase); // of a process that stopped in between
    fs.chmodSync(this.#path, 0o600);
    return fs.readFileSync(this.#path, "utf8");
  }

  // What was there before is overwritten: it has a key that must be gone. Flash memory may keep old pages.
  write(text) {
    const draft = `${this.#path}.new`;
    fs.rmSync(draft, { force: true });
    const file = fs.openSync(draft, "wx", 0o600);
    fs.writeFileSync(file, text);
    fs.fsyncSync(file);
    fs.closeSync(file);
    const before = fs.existsSync(this.#path) ? fs.openSync(this.#path, "r+") : null;
    fs.renameSync(draft, this.#path);
    syncDirectory(dirname(this.#path)); // the new name must be on disk, too, before anything is sent
    if (before !== null) blank(before);
    this.#old().forEach(erase);
  }

  // The files of version 0.1, newest first.
  #old() {
    if (this.#path === this.#where) return [];
    const numbers = fs.readdirSync(this.#where).flatMap((name) => /^state-(\d+)\.json$/.exec(name)?.[1] ?? []);
    return numbers.sort((a, b) => b - a).map((number) => join(this.#where, `state-${number}.json`));
  }
}

function linked(from, lock) {
  try {
    fs.linkSync(from, lock);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

// Remove the lock of a process that has ended. Only who makes the second name may, and only the lock that was read.
function breakLock(lock) {
  try {
    const text = fs.readFileSync(lock, "utf8");
    const [pid, name] = text.split(" ");
    if (lives(Number(pid), lock)) return;
    const right = `${lock}-${name}-broken`;
    fs.linkSync(lock, right);
    if (fs.readFileSync(right, "utf8") === text) fs.unlinkSync(lock);
    fs.unlinkSync(right);
  } catch (error) {
    if (error.code !== "ENOENT" && error.code !== "EEXIST") throw error; // another process was faster
  }
}

function lives(pid, lock) {
  // An earlier process may have had the number of this one: then its lock is older than this process.
  if (pid === process.pid) return fs.statSync(lock).mtimeMs >= Date.now() - 1000 * (process.uptime() + 1);
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code !== "ESRCH";
  }
}

function erase(path) {
  blank(fs.openSync(path, "r+"));
  fs.rmSync(path, { force: true });
}

function blank(file) {
  fs.writeSync(file, new Uint8Array(fs.fstatSync(file).size), 0, undefined, 0);
  fs.fsyncSync(file);
  fs.closeSync(file);
}

function syncDirectory(path) {
  if (process.platform === "win32") return; // there a directory cannot be opened
  const directory = fs.openSync(path, "r");
  fs.fsyncSync(directory);
  fs.closeSync(directory);
}
