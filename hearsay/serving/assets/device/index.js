export { Device } from "./device.js";
export { DeviceError } from "./errors.js";
export { LIMITS } from "./limits.js";
export { IndexedDbStorage } from "./storage/indexed.js";
export { MemoryStorage } from "./storage/memory.js";
export { verifyTerms } from "./terms.js";
