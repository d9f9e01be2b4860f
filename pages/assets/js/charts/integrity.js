// Verdicts on what was collected, by period and attribute, where results carry them.

import { periodsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { number, percent, periodsName, readable } from "../state/words.js";
import { arrivals, arrivalsView } from "./arrivals.js";

const CHECKS = { sum: "sum", widths: "widths", negativity: "below 0", jump: "jump" };
const GOOD = "consistent";

function judgedPeriods(survey) {
  return periodsOf(survey).filter((row) => row.integrity != null);
}

// One row for each period and attribute, with the p-values of the checks, corrected for looking for ever.
function verdictRows({ survey }) {
  return judgedPeriods(survey).flatMap((row) => row.integrity.attributes.map((part) => {
    const noticed = Object.keys(CHECKS).map((name) => part[name]?.smallest).filter((share) => share != null);
    return [row.period, row.begin, readable(part.name), part.verdict, ...Object.keys(CHECKS).map((name) => part[name]?.adjusted ?? null), noticed.length ? Math.min(...noticed) : null];
  }));
}

// All verdicts as one sentence.
export function integrityLine({ survey, words }) {
  const judged = judgedPeriods(survey), bad = judged.filter((row) => row.integrity.verdict !== GOOD), odd = arrivals(survey).filter((one) => one.odd).length;
  const named = [...new Set(bad.map((row) => row.integrity.verdict))].map((verdict) => `${periodsName(survey.about, bad.filter((row) => row.integrity.verdict === verdict).length)} ${verdict}`);
  const said = bad.length ? `Of ${periodsName(survey.about, judged.length)}: ${named.join(", ")}.` : `All ${periodsName(survey.about, judged.length)} can have come from honest devices.`;
  return odd ? `${said} Unusually many or few new ${words.many}: ${periodsName(survey.about, odd)}.` : said;
}

export function integrityCard() {
  const verdicts = {
    see: "verdicts", name: "Verdicts", plain: true,
    shown: ({ survey }) => judgedPeriods(survey).length > 0,
    hint: () => "Contradicted: honest devices do not make such reports. Changed: only the jump from the time before is unusual. The columns of checks are p-values, corrected for all checks and times. Noticed from: had this share of the reports been forged, it would have been noticed, with a chance of 90 %.",
    table: (context) => ({
      name: "integrity",
      columns: [column("period", null), column("begin", "from"), column("attribute", "question"), column("verdict", "verdict"), ...Object.entries(CHECKS).map(([key, name]) => column(key, name, number)), column("smallest", "noticed from", (value) => percent(value * 100))],
      rows: verdictRows(context),
    }),
  };
  return { id: "integrity", folded: true, title: () => "Integrity.", line: integrityLine, views: [verdicts, arrivalsView()] };
}
