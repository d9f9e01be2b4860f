// A device that answers one survey: examples/foreign-client/README.md.
//
//     node client.mjs GATEWAY SURVEY DIRECTORY ATTRIBUTE=VALUE... [--show]

import { Device, DeviceError } from "../../clients/javascript/src/index.js";
import { FileStorage } from "../../clients/javascript/src/storage/file.js";

const [gateway, survey, directory, ...rest] = process.argv.slice(2);
const values = Object.fromEntries(rest.filter((each) => each.includes("=")).map((pair) => pair.split("=")));

// What this app lets anybody learn, whatever a survey asks.
const limits = { report: 2, life: 30, total: 60 };
const now = () => (process.env.NOW ? Date.parse(process.env.NOW) : Date.now());
const device = new Device(new FileStorage(directory), { limits, now });

try {
  if (rest.includes("--show")) {
    await device.joinFrom(gateway, survey);
    for (const [attribute, said] of Object.entries((await device.preview(survey, values)).says)) {
      console.log(`${attribute}: the report says ${said.join(", ") || "nothing"}`);
    }
  } else {
    const { period } = await device.send(gateway, survey, values);
    console.log(`period ${period} is reported`);
  }
} catch (error) {
  if (!(error instanceof DeviceError)) throw error;
  console.error(error.message);
  process.exitCode = error.code === "reported" ? 0 : 1;
}
