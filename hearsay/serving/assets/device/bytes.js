// Bytes, text and hexadecimal digits.

const encoder = new TextEncoder();

export const utf8 = (text) => encoder.encode(text);

export function hex(bytes) {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

export function unhex(text) {
  if (!/^([0-9a-f]{2})*$/.test(text)) throw new TypeError("not hexadecimal text");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

// A number in the fewest of 1, 2, 4 or 8 bytes that hold 0 .. count - 1, little-endian.
export function symbolBytes(symbol, count) {
  const width = count <= 0x100 ? 1 : count <= 0x10000 ? 2 : 4;
  return Uint8Array.from({ length: width }, (_, i) => (symbol >>> (8 * i)) & 0xff);
}

export function concat(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
