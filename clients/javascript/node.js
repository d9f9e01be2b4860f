// What only Node.js has: the state in a file for its owner alone, replaced as a whole; how long the machine has run; and
// why a request failed.

import * as fs from "node:fs";
import * as os from "node:os";
import { randomUUID } from "node:crypto";
import { dirname, join } from "node:path";

const PATIENCE_MS = 30_000;
const POLL_MS = 20;

// `where` is the file; a directory is what version 0.1 had: then the file is in it.
export function file(where, refuse) {
  let path;

  // The files of version 0.1, newest first.
  function old() {
    if (path === where) return [];
    const numbers = fs.readdirSync(where).flatMap((name) => /^state-(\d+)\.json$/.exec(name)?.[1] ?? []);
    return numbers.sort((a, b) => b - a).map((number) => join(where, `state-${number}.json`));
  }

  // The lock is a link to a file that says whose it is: it is never without.
  async function take() {
    path = fs.statSync(where, { throwIfNoEntry: false })?.isDirectory() ? join(where, "device.json") : where;
    const [lock, name] = [`${path}.lock`, randomUUID()];
    const mine = `${lock}-${name}`;
    fs.writeFileSync(mine, `${process.pid} ${name}`, { mode: 0o600, flag: "wx" });
    try {
      for (let waited = 0; !linked(mine, lock); waited += POLL_MS) {
        if (waited >= PATIENCE_MS) {
          const hint = `wait, or stop it; if there is none, delete ${lock}`;
          refuse("state", `another process uses ${where} and does not finish`, hint);
        }
        breakLock(lock);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    } finally {
      fs.unlinkSync(mine);
    }
    return lock;
  }

  return {
    // Alone among all processes of this machine.
    async locked(run) {
      let lock;
      try {
        lock = await take();
        return await run();
      } catch (error) {
        if (!error.syscall) throw error;
        return refuse("state", `${where} cannot be used: ${error.code}`, "name a file that can be written");
      } finally {
        if (lock) fs.unlinkSync(lock);
      }
    },

    // The stored text; null: there is none yet.
    read() {
      const [newest] = old();
      if (!fs.existsSync(path)) return newest ? fs.readFileSync(newest, "utf8") : null; // which is refused
      old().forEach(erase); // release 0.2 had moved them, and stopped in between
      fs.chmodSync(path, 0o600);
      return fs.readFileSync(path, "utf8");
    },

    // What was there before is overwritten: it has reports that must be gone. Flash memory may keep old pages.
    write(text) {
      const draft = `${path}.new`;
      fs.rmSync(draft, { force: true });
      const made = fs.openSync(draft, "wx", 0o600);
      fs.writeFileSync(made, text);
      fs.fsyncSync(made);
      fs.closeSync(made);
      const before = fs.existsSync(path) ? fs.openSync(path, "r+") : null;
      fs.renameSync(draft, path);
      syncDirectory(dirname(path)); // the new name must be on disk, too, before anything is sent
      if (before !== null) blank(before);
    },
  };
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

const BOOT_ID = "/proc/sys/kernel/random/boot_id"; // Linux

// Which start of the machine this is, and for how many seconds it has run since. Where a start has no name, one that is
// less long ago is another.
export function uptime() {
  const named = fs.existsSync(BOOT_ID);
  const start = named ? fs.readFileSync(BOOT_ID, "utf8").trim() : "";
  return [start, os.uptime()];
}

const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY|DECRYPT)|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE/;

// Refuse with what a failed request says about its cause.
export function refuseFor({ code = "" }, address, later, refuse) {
  if (UNTRUSTED.test(code)) {
    const hint = "name the authority's file in NODE_EXTRA_CA_CERTS, or correct the address";
    refuse("certificate", `${address}: its certificate is not trusted: ${code}`, hint);
  }
  if (code === "ECONNREFUSED") refuse("unreachable", `${address}: connection refused`, `is it running there? ${later}`);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN")
    refuse("unreachable", `${address}: no such host`, `look at the address, and at the network; ${later}`);
  refuse("gateway", `${address} did not answer properly (${code || "no code"})`, later);
}
