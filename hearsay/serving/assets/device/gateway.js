// HTTP to a gateway that may be anybody: bounded in time and size, no cookies, no referrer, no redirects.

import { refuse } from "./errors.js";
import { MAX_TERMS_BYTES } from "./terms.js";

const MAX_ANSWER_BYTES = 64 << 10;
const TIMEOUT_MS = 20_000;

export async function fetchTerms(gateway, id, options) {
  const { status, body } = await request(
    gateway,
    `/v1/surveys/${encodeURIComponent(id)}`,
    {},
    MAX_TERMS_BYTES,
    options,
  );
  if (status !== 200) refuse("gateway", `the gateway has no terms of survey ${id} (status ${status})`);
  return body;
}

// "counted" if the report is in the collector's hands, "late" if its period is closed. Everything else is an error, after
// which the same report may be sent again.
export async function postReport(gateway, report, options) {
  const request_ = { method: "POST", body: report, headers: { "content-type": "application/vnd.hearsay.report+json" } };
  const { status, body } = await request(gateway, "/v1/reports", request_, MAX_ANSWER_BYTES, options);
  if (status === 200 || status === 201 || status === 202) return "counted";
  const reason = status >= 400 && status < 500 ? reasonIn(body) : undefined;
  if (reason === "repeat") return "counted";
  if (reason === "late") return "late";
  return refuse(
    "gateway",
    `the report was not taken (status ${status}${reason ? `, ${reason}` : ""}); it can be sent again`,
  );
}

function reasonIn(body) {
  try {
    const { reason } = JSON.parse(new TextDecoder().decode(body));
    return /^[a-z-]{1,40}$/.test(reason) ? reason : undefined;
  } catch {
    return undefined;
  }
}

async function request(gateway, path, init, most, { timeout = TIMEOUT_MS, bearer } = {}) {
  const headers = { ...init.headers, ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) };
  const rules = { redirect: "error", credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };
  const signal = AbortSignal.timeout(timeout);
  try {
    const answer = await fetch(gateway.replace(/\/+$/, "") + path, { ...rules, ...init, headers, signal });
    return { status: answer.status, body: await bounded(answer, most) };
  } catch (error) {
    if (error.code === "gateway") throw error;
    const why = signal.aborted ? `it took longer than ${timeout} ms` : "it did not answer properly";
    return refuse("gateway", `the gateway is of no use: ${why}`);
  }
}

async function bounded(answer, most) {
  const parts = [];
  let size = 0;
  for await (const part of chunks(answer.body)) {
    size += part.length;
    if (size > most) refuse("gateway", `the gateway sent more than ${most} bytes`);
    parts.push(part);
  }
  const whole = new Uint8Array(size);
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

// Not every browser can loop over a stream.
async function* chunks(stream) {
  if (!stream) return;
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}
