/** The largest log-ratios that an observer may find. */
export interface Limits {
  /** Of one report. */
  report: number;
  /** Of all reports of one survey, for ever. */
  life: number;
  /** Of all surveys of this device together, for ever. */
  total: number;
}

/** The limits of a device that is given none. */
export const LIMITS: Readonly<Limits>;

/** What terms reveal. `life` is null where nothing is memoised: then reports add up. */
export interface Losses {
  report: number;
  life: number | null;
}

/** Where a device keeps its state: one text, which is replaced as a whole. */
export interface DeviceStorage {
  /** The text, null at first, and a number that changes with it. */
  read(): Promise<{ text: string | null; revision: number }>;
  /** Replace the text that had this number, durably; false if it has another one by now. */
  write(text: string, revision: number): Promise<boolean>;
}

/** Forgotten with the process or the page. */
export class MemoryStorage implements DeviceStorage {
  read(): Promise<{ text: string | null; revision: number }>;
  write(text: string, revision: number): Promise<boolean>;
}

/** In a browser. */
export class IndexedDbStorage implements DeviceStorage {
  constructor(name?: string);
  read(): Promise<{ text: string | null; revision: number }>;
  write(text: string, revision: number): Promise<boolean>;
}

/** Why a device did not do something. The message never has a person's value. */
export class DeviceError extends Error {
  code:
    | "busy"
    | "changed"
    | "early"
    | "gateway"
    | "late"
    | "limit"
    | "losses"
    | "over"
    | "owed"
    | "pin"
    | "reported"
    | "state"
    | "terms"
    | "unknown"
    | "value";
}

export interface DeviceOptions {
  limits?: Partial<Limits>;
  /** Survey ids and the fingerprints that this app was made for. Left out: the terms of the first use are kept. */
  pins?: Record<string, string>;
  /** Milliseconds since 1970; for tests. */
  now?: () => number;
  /** 32 bytes; for tests. Left out, the system draws them. */
  secret?: Uint8Array;
}

export interface SendOptions {
  /** Milliseconds for each request. */
  timeout?: number;
  /** A credential, if the gateway asks for one. */
  bearer?: string;
}

/** A person's value of each attribute, by name. */
export type Values = Record<string, string | number | Position>;

/** Of a question about places: where the device is, by WGS 84 or in the metres of the survey's grid. */
export type Position = { latitude: number; longitude: number } | { x: number; y: number };

/** A report, and for each answered attribute the values that the answer speaks for. */
export interface Report {
  period: number;
  report: string;
  says: Record<string, string[]>;
}

/** For each answered attribute the values that its memo speaks for; empty where nothing is memoised. Never sent. */
export interface Memos {
  memos: Record<string, string[]>;
}

/** A device that answers surveys for one person, and trusts nobody. */
export class Device {
  constructor(storage: DeviceStorage, options?: DeviceOptions);
  /** Verify the terms of a survey and keep them for good. */
  join(terms: Uint8Array): Promise<{ id: string; fingerprint: string; losses: Losses }>;
  /** The same with the terms that a gateway has. Nothing about the person is sent. */
  joinFrom(
    gateway: string,
    survey: string,
    options?: SendOptions,
  ): Promise<{ id: string; fingerprint: string; losses: Losses }>;
  /** What the next report says. Nothing is stored or sent. `settled`: it is made already, whatever the values. */
  preview(survey: string, values: Values): Promise<Report & Memos & { settled: boolean }>;
  /** Make the report of this period and store it; the same again for the rest of the period. */
  settle(survey: string, values: Values): Promise<Report>;
  /** Record that the settled report of a period has arrived; for apps that send it themselves. */
  confirm(survey: string, period: number): Promise<void>;
  /** Report this period through a gateway. */
  send(gateway: string, survey: string, values: Values, options?: SendOptions): Promise<{ period: number }>;
}

/** Terms from their bytes, with what they reveal; refuses them as `join` does. */
export function verifyTerms(terms: Uint8Array): { id: string; fingerprint: string; losses: Losses };
