// Verdicts on what was collected, by period and attribute, where results carry them.

import { periodsOf } from "../state/series.js";
import { column } from "../state/tables.js";
import { number, percent, readable, whole } from "../state/words.js";

const CHECKS = ["sum", "widths", "negativity", "jump"];

function judgedPeriods(survey) {
  return periodsOf(survey).filter((row) => row.integrity != null);
}

// One row for each period and attribute, with the p-values of the checks, corrected for looking for ever.
function verdictRows({ survey }) {
  return judgedPeriods(survey).flatMap((row) => row.integrity.attributes.map((part) => {
    const noticed = CHECKS.map((name) => part[name]?.smallest).filter((share) => share != null);
    return [row.period, row.begin, readable(part.name), part.verdict, ...CHECKS.map((name) => part[name]?.adjusted ?? null), noticed.length ? Math.min(...noticed) : null];
  }));
}

export function integrityChart() {
  return {
    id: "integrity", wide: true, plain: true,
    shown: ({ survey }) => judgedPeriods(survey).length > 0,
    title: () => "Integrity: can the counts have come from honest devices?",
    hint: ({ survey }) => {
      const counts = new Map();
      for (const row of judgedPeriods(survey)) counts.set(row.integrity.verdict, (counts.get(row.integrity.verdict) ?? 0) + 1);
      const said = [...counts].map(([verdict, periods]) => `${whole(periods)} ${verdict}`).join(", ");
      return `Periods: ${said}. Contradicted: honest devices do not make such reports. Changed: only the jump from the period before is unusual. P-values are corrected for all checks and periods; the last column is the smallest share of forged reports that would have been noticed.`;
    },
    table: (context) => ({
      name: "integrity",
      columns: [column("period", "period"), column("begin", "from"), column("attribute", "question"), column("verdict", "verdict"), ...CHECKS.map((name) => column(name, name, number)), column("smallest", "noticed from", (value) => percent(value * 100))],
      rows: verdictRows(context),
    }),
  };
}
