// What tests share: vectors, terms with changes, a device with a clock that is set, and gateways of all kinds.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Device, MemoryStorage } from "../src/index.js";

export const vectors = JSON.parse(readFileSync(new URL("./vectors.json", import.meta.url), "utf8"));
export const ANY = { report: 1e6, life: 1e6, total: 1e6 };
export const bytes = (text) => new TextEncoder().encode(text);
export const named = (name) => vectors.cases.find((each) => each.name === name);

// The terms of a case after a change.
export function changed(name, change) {
  const terms = JSON.parse(named(name).terms);
  change(terms);
  return bytes(JSON.stringify(terms));
}

// A device at noon of a day; `at.day` sets it.
export function deviceAt(day, options = {}) {
  const at = { day };
  const storage = options.storage ?? new MemoryStorage();
  const now = () => Date.parse("2026-01-01T12:00:00Z") + at.day * 86_400_000;
  return { at, storage, device: new Device(storage, { now, limits: ANY, ...options }) };
}

// Runs a test with a gateway that answers as `handle` says; `handle.posted` are the reports it was sent.
export async function withGateway(handle, test) {
  const posted = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (request.method === "POST") posted.push(body);
    handle(request, response, body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await test(`http://127.0.0.1:${server.address().port}`, posted);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

// A gateway that has these terms and takes every report.
export const honest = (terms) => (request, response) => {
  if (request.method === "GET") response.writeHead(200).end(terms);
  else response.writeHead(201).end("{}");
};
