// For a test in Python: reads terms, one document in each line, and writes what each reveals.

import { readFileSync } from "node:fs";
import { utf8 } from "../src/bytes.js";
import { verifyTerms } from "../src/terms.js";

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { report, life } = verifyTerms(utf8(line)).losses;
  console.log(JSON.stringify({ report, life }));
}
