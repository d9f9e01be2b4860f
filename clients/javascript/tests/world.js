// What devices need in tests: surveys, a gateway on this machine that answers as a test wants, and
// states in memory.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device } from "../device.js";

const read = (name) => readFileSync(new URL(name, import.meta.url), "utf8");
export const OLD_STATE = read("./device-of-0.2.json");
export const OLD_EXPECTED = JSON.parse(read("./device-of-0.2-expected.json"));
export const ANYTHING = JSON.parse(read("../../vectors.json")).any;
export const DAY = 86_400_000;
export const START = Date.parse("2026-01-01T00:00:00Z"); // of all these surveys; periods are days
export const GRACE = 3 * DAY;

// By id: `memos` of 9 numbers `a`, `once` without memos of 4 numbers `c`, `sets` of up to 3 of 6
// values `a`, and others.
const { surveys } = JSON.parse(OLD_STATE);
const termsById = Object.entries(surveys).map(([id, { terms }]) => [id, terms]);
export const TERMS = Object.fromEntries(termsById);

export async function inDirectory(run) {
  const directory = mkdtempSync(join(tmpdir(), "hearsay-"));
  try {
    await run(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

// A state in memory; `text` is what is stored.
export function memory(text = null) {
  const storage = {
    text,
    locked: (run) => run(),
    read: () => storage.text,
    write: (changed) => (storage.text = changed),
  };
  return storage;
}

// A device whose clock is `at.now`, and whose machine never restarts.
export function deviceAt(at, { storage = memory(), limits = ANYTHING, ...more } = {}) {
  const uptime = () => ["never restarted", at.now / 1000];
  return new Device("device", { storage, limits, now: () => at.now, uptime, ...more });
}

// `answer` gives a status, or [status, reason], for a report.
export async function withGateway(answer, run) {
  const posted = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      if (request.method === "GET") return response.end(TERMS[request.url.split("/").at(-1)]);
      const report = JSON.parse(body);
      const period = parseInt(report.period, 16);
      posted.push({ body, report, period, port: request.socket.remotePort });
      const [status, reason] = [answer(period, report)].flat();
      response.writeHead(status);
      return response.end(JSON.stringify({ reason }));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await run(`http://127.0.0.1:${server.address().port}`, posted);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}
