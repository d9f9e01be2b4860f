// What a device refuses, and checks of what a stranger has written.

// `code` says why, for programs; the message never has a person's value.
export class DeviceError extends Error {
  constructor(code, message, hint = "") {
    super(hint ? `${message} (${hint})` : message);
    this.name = "DeviceError";
    this.code = code;
    this.hint = hint;
    this.againAt = null; // of `send`: when a report is due that is owed
  }
}

export function refuse(...why) {
  throw new DeviceError(...why);
}

// ---- terms: each check gives what it has checked, or refuses

export const has = (record, key) => Object.hasOwn(record, key);
export const own = (record, key) => (has(record, key) ? record[key] : undefined);

export const SKIP = "do not answer it";
export const notTerms = (what) => refuse("terms", `these are not the terms of a survey: ${what}`, SKIP);
export const need = (condition, what) => condition || notTerms(what);
export const isRecord = (given) => typeof given === "object" && given !== null && !Array.isArray(given);
export const isNumber = (given) => typeof given === "number" && Number.isFinite(given);
export const unique = (list) => new Set(list).size === list.length;
export const field = (record, key, otherwise = null) => (has(record, key) ? record[key] : otherwise);
export const matching = (pattern, given, what) => pattern.exec(textOf(given)) ?? notTerms(what);

export function onlyKeys(record, known, what) {
  const all = isRecord(record) && Object.keys(record).every((key) => known.split(" ").includes(key));
  need(all, `${what} has a key that is not known`);
}

// Text that has UTF-8 bytes: half of a surrogate pair has none.
export const textOf = (given) => (typeof given === "string" && !/\p{Surrogate}/u.test(given) ? given : notTerms("text"));
export const listOf = (given, most, what) =>
  Array.isArray(given) && given.length > 0 && given.length <= most ? given : notTerms(what);
export const wholeIn = (given, least, most, what) =>
  Number.isInteger(given) && least <= given && given <= most ? given : notTerms(what);
export const oneOf = (given, known, what) => (known.includes(given) ? given : notTerms(what));

// What JSON says. JSON.parse keeps the last of two keys with the same name; another reader may keep the first.
export function parsed(text) {
  const [found, records] = [JSON.parse(text), []];
  let before;
  for (const [token] of text.matchAll(/"(?:[^"\\]+|\\.)*"|[{}[\],:]/g)) {
    if (token === "{" || token === "[") records.push(new Set());
    if (token === "}" || token === "]") records.pop();
    if (token === ":") {
      const keys = records.at(-1);
      need(keys.size < keys.add(JSON.parse(before)).size, "a key twice");
    }
    before = token;
  }
  return found;
}
