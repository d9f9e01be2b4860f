// What a device may reveal, whatever a survey asks (docs/device-protocol.md, "Limits").

import { refuse } from "./errors.js";

// report: one report. life: all reports of one survey, for ever. total: all surveys together, for ever.
export const LIMITS = Object.freeze({ report: 2, life: 30, total: 60 });

export function checkedLimits(given = {}) {
  const limits = { ...LIMITS, ...given };
  for (const [name, limit] of Object.entries(limits)) {
    const good = name in LIMITS && Number.isFinite(limit) && limit > 0;
    if (!good) throw new TypeError(`limits: ${name} must be a finite number above 0; there are report, life and total`);
  }
  return limits;
}

// What a survey has cost so far: memos are counted when it is joined, all that there can ever be; fresh noise per answer.
const spent = ({ losses, answers }) => losses.life ?? answers * losses.report;

// Refuses if the state, as it would be, exceeds a limit. Nothing here depends on a person's values.
export function requireWithin(limits, surveys, id) {
  const { losses } = surveys[id];
  const within = (loss, name, what) => {
    if (!(loss <= limits[name] * (1 + 1e-9))) {
      refuse(
        "limit",
        `survey ${id}: ${what} may reveal ${loss.toPrecision(4)}, more than the limit of ${limits[name]} (${name})`,
      );
    }
  };
  within(losses.report, "report", "one report");
  within(spent(surveys[id]), "life", "all its reports");
  const total = Object.values(surveys).reduce((sum, survey) => sum + spent(survey), 0);
  within(total, "total", "it and all other surveys of this device");
}
