// A device in the browser: choose an answer, see the memo, see what leaves, watch the estimate move.

import { Device, DeviceError, LIMITS } from "/try/device.js";

const POLL_MS = 1000;
const EXAMPLE = "An example: the memo with noise that is thrown away. The report gets new noise when you send it. It says:";
const SETTLED = "The memo with the noise of this report. These bytes are sent, and no others. They say:";
const find = (id) => document.getElementById(id);
const RAISED = { report: 1e6, value: 1e6, year: 1e9, week: 1e9, ratio: 1, shortest: 60, horizon: 65535 };

let device;
let terms; // of the chosen survey
let about; // what the server says of it: its values, and chances for any two histories
let shown = 0; // counts previews, so that a slow one does not replace a newer one

const number = () => Number(sessionStorage.getItem("device") ?? "0");
const limits = () => (sessionStorage.getItem("raised") ? RAISED : LIMITS);
const readable = (name) => name.replaceAll("_", " ");
const percent = (share) => (share === null ? "?" : `${Math.round(100 * Math.min(1, Math.max(0, share)))} %`); // an estimate may be outside

function trouble(error) {
  find("trouble").hidden = error === undefined;
  if (error?.code === "credential") find("credential").hidden = false;
  find("raise").hidden = !["limit", "rules"].includes(error?.code) || limits() === RAISED;
  if (error !== undefined) find("trouble").textContent = error.message;
  if (error !== undefined && !(error instanceof DeviceError)) console.error(error);
}

const values = () => Object.fromEntries(new FormData(find("answer")));

function describe(list, entries, none) {
  list.replaceChildren(
    ...Object.entries(entries).flatMap(([name, said]) => [
      text("dt", readable(name)),
      text("dd", said.length ? said.join(", ") : "nothing"),
    ]),
  );
  if (!list.children.length) list.append(text("dd", none));
}

function text(kind, content) {
  const element = document.createElement(kind);
  element.textContent = content;
  return element;
}

async function choose(id) {
  trouble();
  device = new Device(`hearsay-try-${number()}`, { limits: limits() });
  find("send").disabled = true;
  find("answer").replaceChildren();
  try {
    const answer = await fetch(`/v1/surveys/${encodeURIComponent(id)}`, { cache: "no-store" });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    await device.join(bytes, { trustFirstUse: true }); // verified here, whatever the server says
    terms = JSON.parse(new TextDecoder().decode(bytes)).declared;
    about = await (await fetch(`/try/${encodeURIComponent(id)}/about.json`)).json();
    await explain();
    for (const [name, listed] of Object.entries(about.values)) find("answer").append(choice(name, listed));
    await preview();
  } catch (error) {
    trouble(error);
  }
}

async function explain() {
  const { report, value } = await device.explain();
  const linked = Object.entries(about.any).map(([t, chance]) => `${percent(chance)} from ${t} reports`);
  const all = Object.entries(value).map(([name, chance]) => `${readable(name)} ${percent(chance)}`);
  find("costs").textContent =
    `Device ${number() + 1}. How often whoever sees a report guesses the right one of two equally likely answers: ` +
    `${percent(report[terms.id])} at most. From all reports of this device so far: ${all.join(", ")}. ` +
    `Who knows which reports are this device's can also see when an answer changed: of any two histories of answers the ` +
    `right one is guessed in ${linked.join(" and ")}, at most.`;
}

function choice(name, listed) {
  const label = text("label", `${readable(name)} `);
  label.className = "choice";
  const select = document.createElement("select");
  select.name = name;
  select.append(...listed.map((value) => new Option(value, value)));
  label.append(select);
  return label;
}

async function preview() {
  const mine = (shown += 1);
  try {
    const { report, says, memo, example } = await device.preview(terms.id, values());
    if (mine !== shown) return;
    describe(find("memo"), memo ?? {}, "Nothing: this survey draws new noise for every report.");
    showReport(report, says);
    find("about").textContent = example ? EXAMPLE : SETTLED;
    find("outcome").textContent = example ? "" : "This report is made already, and not yet confirmed.";
    find("send").disabled = false;
    trouble();
  } catch (error) {
    if (mine !== shown) return;
    find("send").disabled = true;
    if (error.code === "reported") find("outcome").textContent = "This device has reported. It reports again when the time of this survey goes on.";
    else trouble(error);
  }
}

function showReport(report, says) {
  describe(find("says"), says, "Only that this device is there.");
  find("report").textContent = report;
}

// Make the report, show it, and send it at once: people who try a survey want to see it arrive.
async function send() {
  find("send").disabled = true;
  try {
    const { report, says } = await device.settle(terms.id, values());
    showReport(report, says);
    find("about").textContent = SETTLED;
    const bearer = find("token").value || undefined;
    await device.send(location.origin, terms.id, values(), { bearer, apart: false });
    find("outcome").textContent = "Your report is on its way into the estimate.";
    trouble();
    await explain();
    await showLive();
  } catch (error) {
    await preview();
    trouble(error);
  }
}

async function showLive() {
  if (terms === undefined) return;
  const answer = await fetch(`/try/${encodeURIComponent(terms.id)}/live.json`, { cache: "no-store" });
  if (!answer.ok) return;
  const live = await answer.json();
  const newest = live.open?.at(-1);
  if (newest === undefined) return;
  const n = newest.n === null ? "Too few reports to show anything" : `${newest.n} ${newest.n === 1 ? "report is" : "reports are"} counted`;
  const [when, ahead] = [newest.begin.slice(0, 16).replace("T", " "), newest.begin.slice(19)];
  find("counted").textContent = `${n} since ${when} UTC${ahead === "Z" ? "" : ahead}.`;
  find("live").replaceChildren(...newest.attributes.filter(({ estimate }) => estimate !== null).map(table));
}

function table({ name, values: listed, estimate, low, high, consistent }) {
  const made = document.createElement("table");
  made.append(text("caption", readable(name)));
  listed.forEach((value, i) => {
    const row = made.insertRow();
    row.append(text("th", value));
    const meter = document.createElement("meter");
    meter.max = 1;
    meter.value = consistent[i];
    meter.ariaLabel = value;
    row.insertCell().append(meter);
    const figure = row.insertCell();
    figure.className = "share";
    figure.textContent = `${percent(estimate[i])} (${percent(low[i])} to ${percent(high[i])})`;
  });
  return made;
}

async function start() {
  const { surveys } = await (await fetch("/v1/surveys")).json();
  find("survey").append(...surveys.map(({ id, title }) => new Option(title || id, id)));
  find("survey").addEventListener("change", () => choose(find("survey").value));
  find("answer").addEventListener("change", preview);
  find("send").addEventListener("click", send);
  find("another").addEventListener("click", () => {
    sessionStorage.setItem("device", String(number() + 1));
    find("outcome").textContent = "";
    choose(find("survey").value);
  });
  find("raise").addEventListener("click", () => {
    sessionStorage.setItem("raised", "yes");
    choose(find("survey").value);
  });
  await choose(surveys[0].id);
  await showLive();
  setInterval(() => showLive().catch(() => {}), POLL_MS);
}

start().catch(trouble);
