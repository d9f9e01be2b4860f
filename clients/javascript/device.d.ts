/** The most that a device reveals, as largest log-ratios, and which surveys it answers at all. */
export interface Limits {
  /** One report. */
  report: number;
  /** All reports of all surveys about a value of the app that stays as it is, in a year. */
  value: number;
  /** All that is charged in a year. */
  year: number;
  /** The reports of a week, where a credential links them. */
  week: number;
  /** The largest share of what a memo costs that one report of it may cost; 1: the memo itself may be sent. */
  ratio: number;
  /** Of periods, in seconds. */
  shortest: number;
  /** The longest. */
  horizon: number;
}

/** The limits of a device that is given none. */
export const LIMITS: Readonly<Limits>;

/** Why a device did not do something. The message never has a person's value. */
export class DeviceError extends Error {
  code:
    | "address"
    | "certificate"
    | "changed"
    | "clock"
    | "credential"
    | "early"
    | "gateway"
    | "late"
    | "limit"
    | "linked"
    | "losses"
    | "over"
    | "pin"
    | "signature"
    | "reported"
    | "rules"
    | "settings"
    | "state"
    | "terms"
    | "timeout"
    | "unknown"
    | "unreachable";
  /** What to do; also at the end of the message. */
  hint: string;
  /** Of an error of `send`: as in `Sent`. */
  againAt: number | null;
}

/** Of a question about places: where the device is, by WGS 84 or in the metres of the survey's grid. */
export type Position = { latitude: number; longitude: number } | { x: number; y: number };

/** A person's value of each attribute, by name. A value that is not listed, or missing, is never an error. Of sets a list. */
export type Values = Record<string, string | number | boolean | null | undefined | Position | (string | number)[]>;

/** A report as it is sent, or an example of one. */
export interface Report {
  period: number;
  report: string;
  /** For each answered attribute the values that the answer speaks for. */
  says: Record<string, string[]>;
  /** The attributes whose value was not one of the survey's. */
  unlisted: string[];
  /** Whether it was made with a key that is thrown away: the report of this period will have other noise. */
  example: boolean;
}

/** What `send` did. */
export interface Sent {
  period: number;
  /** `reported`: delivered in this call; `already reported`: before; `owed`: settled, and sent by a later call. */
  status: "reported" | "already reported" | "owed";
  unlisted: string[];
  /** Earlier periods whose reports were never delivered, and are of no use any more. */
  dropped: number[];
  /** When the next owed report is due, in milliseconds since 1970; null if none is owed. Call `send` then. */
  againAt: number | null;
  /** `clock`: the gateway says that a period has not begun that has begun by this clock. One of both clocks is wrong. */
  doubt: "clock" | null;
}

/** What published numbers of a survey tell about whether this device reported in a period. */
export interface Presence {
  /** The largest share of right guesses of somebody who knows everything about all other devices; not from later answers. */
  chance: number;
  /** The same in words. */
  text: string;
}

/** What reports may tell, for the person whose device it is. */
export interface Explained {
  /** By survey: how often the right one of two equally likely answers is guessed from one report. */
  report: Record<string, number>;
  /** By value of the app: the same from all reports of a year, if it stays as it is. */
  value: Record<string, number>;
  year: { answers: number; charged: number; committed: number; limit: number };
  /** All answers of this device, ever. */
  answers: number;
  /** By attribute that is a place: how far apart the two positions are whose chances are given. */
  metres: Record<string, number>;
  /** By survey: what published numbers tell about whether this device reported in a period. */
  presence: Record<string, Presence>;
  week: string;
  /** Surveys that ask the same. */
  shared: string[][];
}

export interface SendOptions {
  /** The hash of the terms, of versions 1 and 2 also their fingerprint. Without it they are accepted from this machine only, or with `trustFirstUse`. */
  pin?: string;
  /** The public key of whoever signs the terms, in base64. */
  author?: string;
  trustFirstUse?: boolean;
  /** A credential, if the gateway asks for one. */
  bearer?: string;
  /** Milliseconds for each request. */
  timeout?: number;
  /** The most seconds between settling and sending, for an app that does not run for long; 0: send in this call. */
  spread?: number | null;
  /** For how many seconds this call may sleep until a report is due; for an app with a timer, its step. */
  wait?: number;
  /** Whether reports are sent apart, at moments that do not show that one device sends them. Default: not on loopback. */
  apart?: boolean;
}

/** Answers surveys for one person within limits, and trusts nobody. */
export class Device {
  /** `path`: a file in Node.js, the name of a database in a browser. `now`, in milliseconds since 1970, is for tests. */
  constructor(path: string, options?: { limits?: Partial<Limits>; now?: () => number });
  /** Settle the report of this period; then send at most one that is due. Call it by the clock, not by the event. */
  send(gateway: string, survey: string, values: Values, options?: SendOptions): Promise<Sent>;
  /** The report of this period; if it is not settled, an example, and what the memo behind it says. */
  preview(survey: string, values: Values): Promise<Report & { memo?: Record<string, string[]> }>;
  /** What all reports may tell. */
  explain(): Promise<Explained>;
  /** Answer a survey no more: erase its terms and owed reports. */
  leave(survey: string): Promise<void>;
  /** After the clock was ahead, and is right again: drop the reports of periods that have not begun. */
  forgetClock(survey: string): Promise<void>;
  /** The reports that are settled, not delivered, and still taken; oldest first. */
  owed(survey: string): Promise<Report[]>;
  /** For tests of an app: which of its possible values a survey does not list, by attribute. */
  check(terms: Uint8Array | string, possible: Record<string, unknown[]>): Promise<Record<string, unknown[]>>;
  /** For programs that have the terms already: verify and keep them; returns the survey's id. */
  join(
    terms: Uint8Array | string,
    options?: { pin?: string; author?: string; signature?: string | null; trustFirstUse?: boolean; credential?: boolean | null },
  ): Promise<string>;
  /** For programs that send reports themselves: make the report of this period and store it. */
  settle(survey: string, values: Values): Promise<Report>;
  /** For programs that send reports themselves: a settled report has arrived. */
  confirm(survey: string, period: number): Promise<void>;
}

/** What a recorder has, as JSON can write it. */
export interface Recorded {
  weights: [string, number][];
  events: number;
}

/** Many events of a period become the one value of its report. */
export class Recorder {
  constructor(rule: "first" | "last" | "most frequent" | "longest" | "every", options?: { state?: Recorded });
  /** `buckets`: from how many events on a value is the report's. */
  constructor(rule: "count", options: { buckets: Record<string, number>; state?: Recorded });
  readonly state: Recorded;
  /** An event; `seconds` is how long it lasted, for the rule `longest`. */
  add(value?: unknown, seconds?: number): void;
  /** What `send` is to be given; null if nothing happened, which is a value like any other. */
  readonly value: string | string[] | null;
  clear(): void;
}
