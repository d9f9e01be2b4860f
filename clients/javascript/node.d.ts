import type { DeviceStorage } from "./index.js";

/** In a directory of its own, for Node.js. */
export class FileStorage implements DeviceStorage {
  constructor(directory: string);
  read(): Promise<{ text: string | null; revision: number }>;
  write(text: string, revision: number): Promise<boolean>;
}
