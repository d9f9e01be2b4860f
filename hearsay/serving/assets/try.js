// A device in the browser: choose an answer, see the memo, see what leaves, watch the estimate move.

import { Device, DeviceError, IndexedDbStorage, LIMITS } from "/try/device/index.js";

const POLL_MS = 1000;
const find = (id) => document.getElementById(id);
const RAISED = { report: 1000, life: 1000, total: 10_000 };

let device;
let terms; // of the chosen survey
let shown = 0; // counts previews, so that a slow one does not replace a newer one

const number = () => Number(sessionStorage.getItem("device") ?? "0");
const limits = () => (sessionStorage.getItem("raised") ? RAISED : LIMITS);
const open = () => new Device(new IndexedDbStorage(`hearsay-try-${number()}`), { limits: limits() });

function trouble(error) {
  find("trouble").hidden = error === undefined;
  find("raise").hidden = error?.code !== "limit" || limits() === RAISED;
  if (error !== undefined) find("trouble").textContent = error.message;
  if (error !== undefined && !(error instanceof DeviceError)) console.error(error);
}

const values = () => Object.fromEntries(new FormData(find("answer")));

function describe(list, entries, none) {
  list.replaceChildren(
    ...Object.entries(entries).flatMap(([name, said]) => [
      text("dt", name),
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
  device = open();
  find("send").disabled = true;
  find("answer").replaceChildren();
  try {
    const answer = await fetch(`/v1/surveys/${encodeURIComponent(id)}`, { cache: "no-store" });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const { losses } = await device.join(bytes); // verified here, whatever the server says
    terms = JSON.parse(new TextDecoder().decode(bytes)).declared;
    const life = losses.life === null ? "reports add up" : `all reports at most ${losses.life.toPrecision(3)}`;
    find("costs").textContent = `Device ${number() + 1}. One report reveals at most ${losses.report.toPrecision(3)}; ${life}.`;
    const found = await (await fetch(`/try/${encodeURIComponent(id)}/values.json`)).json();
    for (const [name, listed] of Object.entries(found)) find("answer").append(choice(name, listed));
    await preview();
  } catch (error) {
    trouble(error);
  }
}

function choice(name, listed) {
  const label = text("label", `${name} `);
  const select = document.createElement("select");
  select.name = name;
  select.append(...listed.map((value) => new Option(value, value)));
  label.append(select);
  return label;
}

async function preview() {
  const mine = (shown += 1);
  try {
    const { report, says, memos, settled } = await device.preview(terms.id, values());
    if (mine !== shown) return;
    describe(find("memo"), memos, "Nothing: this survey draws new noise for every report.");
    describe(find("says"), says, "Only that this device is there.");
    find("report").textContent = report;
    find("outcome").textContent = settled ? "This report is made already, and not yet confirmed." : "";
    find("send").disabled = false;
    trouble();
  } catch (error) {
    if (mine !== shown) return;
    find("send").disabled = true;
    if (error.code === "reported") find("outcome").textContent = "This device has reported in this period.";
    else trouble(error);
  }
}

async function send() {
  find("send").disabled = true;
  try {
    const { period } = await device.send(location.origin, terms.id, values());
    find("outcome").textContent = `Period ${period} is reported.`;
    trouble();
    await showLive();
  } catch (error) {
    trouble(error);
    await preview();
  }
}

async function showLive() {
  if (terms === undefined) return;
  const answer = await fetch(`/try/${encodeURIComponent(terms.id)}/live.json`, { cache: "no-store" });
  if (!answer.ok) return;
  const live = await answer.json();
  const newest = live.open?.at(-1);
  if (newest === undefined) return;
  const n = newest.n === null ? "Too few reports to show anything" : `${newest.n} reports are counted`;
  find("counted").textContent = `${n} in the period from ${newest.begin.slice(0, 16).replace("T", " ")} UTC.`;
  find("live").replaceChildren(...newest.attributes.filter(({ estimate }) => estimate !== null).map(table));
}

function table({ name, values: listed, estimate, low, high, consistent }) {
  const made = document.createElement("table");
  made.append(text("caption", name));
  listed.forEach((value, i) => {
    const row = made.insertRow();
    row.append(text("th", value));
    const meter = document.createElement("meter");
    meter.max = 1;
    meter.value = consistent[i];
    meter.ariaLabel = value;
    row.insertCell().append(meter);
    const figure = row.insertCell();
    figure.className = "figure";
    const percent = (share) => (share === null ? "?" : `${Math.round(100 * share)} %`);
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
