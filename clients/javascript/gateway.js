// HTTP to anybody: bounded in time and size, no redirects, nothing in the clear, a connection for
// each request.

import { DeviceError, refuse } from "./errors.js";

export const MAX_TERMS_BYTES = 8 << 20;
const MAX_ANSWER_BYTES = 64 << 10;
export const LATER = "the same report will be sent again";

export function gatewayAt(address, timeout, bearer) {
  let url = { protocol: "" };
  try {
    url = new URL(address);
  } catch {} // refused below
  if (!/^https?:$/.test(url.protocol) || url.username || url.password)
    refuse("address", `${address} is no address of a gateway`, "write it like https://collect.example");
  const at = (url.origin + url.pathname).replace(/\/+$/, "");
  const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol === "http:" && !loopback)
    refuse("address", `${at} would carry answers in the clear`, "write https; http is for this machine");
  if (bearer !== undefined && !/^[\x21-\x7e]+$/.test(bearer))
    refuse("settings", "the bearer has characters that no credential has", "give it as it was handed out");
  const credential = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };

  function refused(status, what) {
    if (status === 401 || status === 403)
      refuse("credential", `${at}: credential refused (status ${status})`, "give the `bearer` of this device");
    refuse("gateway", `${at}: ${what} (${status ? `status ${status}` : "a redirect"})`, LATER);
  }

  async function request(path, init, most) {
    const signal = AbortSignal.timeout(timeout);
    // Two reports on one connection would be of one device. Browsers share connections all the
    // same.
    const headers = { ...init.headers, ...credential, connection: "close" };
    const rules = { redirect: "manual", credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };
    let answer;
    try {
      answer = await fetch(at + path, { ...rules, ...init, headers, signal });
      const body = await bounded(answer.body?.getReader(), most);
      return { status: answer.status, body, signature: answer.headers.get("hearsay-signature") };
    } catch (error) {
      if (error instanceof DeviceError) throw error;
      if (signal.aborted) refuse("timeout", `${at} took longer than ${timeout / 1000} s`, LATER);
      if (error.cause) (await import("./node.js")).refuseFor(error.cause, at, LATER, refuse);
      if (answer) refuse("gateway", `${at} did not answer properly`, LATER);
      const hint = `is it running, is its certificate trusted, does it allow this origin? ${LATER}`;
      return refuse("unreachable", `${at} cannot be reached from this page, and a browser does not say why`, hint);
    }
  }

  async function bounded(reader, most) {
    const parts = [];
    for (let [size, part] = [0, await reader?.read()]; part && !part.done; part = await reader.read()) {
      parts.push(part.value);
      size += part.value.length;
      if (size > most) {
        reader.cancel().catch(() => {});
        refuse("gateway", `${at} sent more than ${most} bytes`, LATER);
      }
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  return {
    address: at,
    loopback,
    async terms(survey) {
      const { status, ...found } = await request(`/v1/surveys/${encodeURIComponent(survey)}`, {}, MAX_TERMS_BYTES);
      if (status === 404) refuse("gateway", `${at} has no survey ${survey}`, "look at its id, and at the address");
      return status === 200 ? found : refused(status, "the terms were not given");
    },
    async post(report) {
      const init = { method: "POST", body: report, headers: { "content-type": "application/vnd.hearsay.report+json" } };
      const { status, body } = await request("/v1/reports", init, MAX_ANSWER_BYTES);
      if ([200, 201, 202].includes(status)) return "counted";
      const found = /"reason"\s*:\s*"([a-z-]{1,40})"/.exec(new TextDecoder().decode(body));
      const reason = found && status >= 400 && status < 500 ? found[1] : "";
      if (["repeat", "late", "too-far-ahead"].includes(reason)) return reason;
      return refused(status, `the report was not taken${reason && `: ${reason}`}`);
    },
  };
}
