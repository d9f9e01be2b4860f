// Before a program begins: it is killed at one of its operations on files.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
let left = Number(process.env.DIES_AT);
const changing = ["write", "writeFile", "link", "unlink", "open", "fsync", "close", "rename", "rm", "chmod"];
for (const name of changing.map((each) => `${each}Sync`)) {
  const real = fs[name];
  fs[name] = (...given) => {
    if (left-- === 0) process.kill(process.pid, "SIGKILL");
    return real(...given);
  };
}
syncBuiltinESMExports();
