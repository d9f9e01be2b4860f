// Why a device did not do something.

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
