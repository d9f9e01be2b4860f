// What a device refuses, and why. `code` is for programs; the message says what was wrong and never a person's value.

export class DeviceError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "DeviceError";
    this.code = code;
  }
}

export function refuse(code, message) {
  throw new DeviceError(code, message);
}
