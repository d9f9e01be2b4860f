// Many events of a period become the one value of its report.

import { refuse } from "./errors.js";

const RULES = ["first", "last", "most frequent", "longest", "every", "count"];

export class Recorder {
  #rule;
  #buckets;
  #weights;
  #events;

  constructor(rule, { buckets: least = {}, state = { weights: [], events: 0 } } = {}) {
    const sizes = Object.values(least);
    const refused = (what, hint) => refuse("settings", `a recorder: ${what}`, hint);
    if (!RULES.includes(rule)) refused(`no rule is called ${rule}`, `write one of ${RULES.join(", ")}`);
    if ((rule === "count") !== sizes.length > 0) refused("buckets belong to the rule count", "give both, or none");
    if (rule === "count" && !sizes.includes(0)) refused("no bucket begins with 0 events", "name the one for no event");
    [this.#rule, this.#buckets] = [rule, Object.entries(least).sort(([, a], [, b]) => b - a)];
    [this.#weights, this.#events] = [new Map(state.weights), state.events];
  }

  get state() {
    return { weights: [...this.#weights], events: this.#events };
  }

  add(value = "", seconds = 0) {
    this.#events += 1;
    if (this.#rule === "count" || (this.#rule === "first" && this.#weights.size)) return;
    if (this.#rule === "last") this.#weights.clear();
    const name = String(value);
    this.#weights.set(name, (this.#weights.get(name) ?? 0) + (this.#rule === "longest" ? seconds : 1));
  }

  get value() {
    if (this.#rule === "count") return this.#buckets.find(([, least]) => least <= this.#events)[0];
    if (this.#rule === "every") return [...this.#weights.keys()];
    const most = Math.max(...this.#weights.values());
    return [...this.#weights.keys()].find((name) => this.#weights.get(name) === most) ?? null;
  }

  clear() {
    [this.#weights, this.#events] = [new Map(), 0];
  }
}
