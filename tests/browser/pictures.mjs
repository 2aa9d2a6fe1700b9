// Pictures for tests, made of numbers.

import { crc32, deflateSync } from "node:zlib";

function chunk(type, content) {
  const body = Buffer.concat([Buffer.from(type), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/**
 * Returns a PNG of these pixels: `colour(x, y)` is 0xRRGGBB. It is not compressed, so it has 3 bytes for each pixel, and
 * `more` bytes that no decoder reads.
 */
export function png(width, height, colour, more = 0) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8); // 8 bits of red, green and blue
  const lines = Buffer.alloc(height * (1 + 3 * width));
  for (let y = 0, at = 0; y < height; y++) {
    at++; // the filter of the line: none
    for (let x = 0; x < width; x++, at += 3) lines.writeUIntBE(colour(x, y), at, 3);
  }
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  const chunks = [["IHDR", head], ["moRe", Buffer.alloc(more)], ["IDAT", deflateSync(lines, { level: 0 })], ["IEND", Buffer.alloc(0)]];
  return Buffer.concat([signature, ...chunks.map(([type, content]) => chunk(type, content))]);
}

const rgb = (...parts) => parts.reduce((colour, part) => (colour << 8) | (part & 0xff), 0);

/** A picture of 4 MB, 600 pixels wide, another one for each number. */
export const photo = (number) =>
  png(600, 556, (x, y) => rgb((x * (number + 1)) >> 2, (y * (number + 2)) >> 2, x ^ y ^ (number * 37)), 3_000_000);

/** A wave, 640 pixels wide. */
export const chart = () => png(640, 400, (x, y) => rgb(40, (x * 255) / 640, y < 200 - 120 * Math.sin(x / 60) ? 230 : 90));
