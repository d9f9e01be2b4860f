// A device that answers one survey: examples/foreign-client/README.md.
//
//     node client.mjs GATEWAY SURVEY STATE ATTRIBUTE=VALUE... [--show]

import { Device, DeviceError } from "../../clients/javascript/device.js";

const [gateway, survey, state, ...rest] = process.argv.slice(2);
const values = Object.fromEntries(rest.filter((each) => each.includes("=")).map((pair) => pair.split("=")));

// Periods of a minute are for trying it; everything else is what a person's device allows.
const limits = { shortest: 60 };
const now = () => (process.env.NOW ? Date.parse(process.env.NOW) : Date.now());
const device = new Device(state, { limits, now });

try {
  if (rest.includes("--show")) {
    for (const [attribute, said] of Object.entries((await device.preview(survey, values)).says))
      console.log(`${attribute}: the report says ${said.join(", ") || "nothing"}`);
  } else {
    const { period, status } = await device.send(gateway, survey, values);
    console.log(`period ${period}: ${status}`);
  }
} catch (error) {
  if (!(error instanceof DeviceError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
