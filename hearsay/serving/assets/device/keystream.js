// Derived randomness (docs/device-protocol.md, "Draws"): AES-128 on counter blocks, keyed per purpose by HMAC-SHA256.

import { ecb } from "./noble/ciphers/aes.js";
import { hmac } from "./noble/hashes/hmac.js";
import { sha256 } from "./noble/hashes/sha2.js";
import { concat, utf8 } from "./bytes.js";

const BLOCK = 16;
const LANE = 2 ** 24; // block numbers per lane
const [WHOLE, SHARED, FURTHER] = [0, 1, 2]; // the lanes of blocks, words and further bits

export function draws(secret, purpose, tweak = 0) {
  const message = purpose.map((part) => {
    const text = utf8(part);
    const size = new Uint8Array(4);
    new DataView(size.buffer).setUint32(0, text.length, true);
    return concat(size, text);
  });
  const key = hmac(sha256, secret, concat(...message)).subarray(0, BLOCK);
  return new Draws(key, tweak, 0);
}

class Draws {
  #key;
  #tweak;
  #lane;

  constructor(key, tweak, lane) {
    this.#key = key;
    this.#tweak = tweak;
    this.#lane = lane;
  }

  // The same key and tweak, other bits.
  fork(lane) {
    return new Draws(this.#key, this.#tweak, this.#lane + 3 * lane);
  }

  // `count` numbers of 64 bits.
  longs(count) {
    const view = this.#encrypt(WHOLE, 0, Math.ceil(count / 2));
    return Array.from({ length: count }, (_, i) => view.getBigUint64(8 * i, true));
  }

  // `count` numbers of 16 bits.
  words(count) {
    const view = this.#encrypt(SHARED, 0, Math.ceil(count / 8));
    return Uint16Array.from({ length: count }, (_, i) => view.getUint16(2 * i, true));
  }

  // 64 further bits for the word at a place.
  further(place) {
    return this.#encrypt(FURTHER, place, 1).getBigUint64(0, true);
  }

  // A device of its own is device 0: the first eight bytes of each counter are zero.
  #encrypt(lane, first, count) {
    const counters = new Uint8Array(BLOCK * count);
    const view = new DataView(counters.buffer);
    for (let i = 0; i < count; i++) {
      view.setUint32(BLOCK * i + 8, this.#tweak, true);
      view.setUint32(BLOCK * i + 12, (this.#lane + lane) * LANE + first + i, true);
    }
    const out = ecb(this.#key, { disablePadding: true }).encrypt(counters);
    return new DataView(out.buffer, out.byteOffset, out.byteLength);
  }
}
