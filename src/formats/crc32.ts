/** CRC-32 as in IEEE 802.3 and zlib: polynomial 0xEDB88320 (reflected), start and final xor 0xFFFFFFFF. */

/** Eight tables of 256: table k holds the remainder of a byte with k bytes behind it. */
const TABLES = /* @__PURE__ */ makeTables();

function makeTables(): Uint32Array {
  const tables = new Uint32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    tables[byte] = value;
  }
  for (let at = 256; at < tables.length; at++) {
    const before = tables[at - 256]!;
    tables[at] = (before >>> 8) ^ tables[before & 255]!;
  }
  return tables;
}

/**
 * @param before the CRC of the bytes that stand before these ones
 * @returns an unsigned 32-bit integer
 */
export function crc32(bytes: Uint8Array, before = 0): number {
  const t = TABLES;
  const length = bytes.length;
  let crc = ~before;
  let i = 0;
  // Eight bytes a step: gigabytes of weights pass through here.
  for (; i + 8 <= length; i += 8) {
    crc ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    crc =
      t[1792 + (crc & 255)]! ^
      t[1536 + ((crc >>> 8) & 255)]! ^
      t[1280 + ((crc >>> 16) & 255)]! ^
      t[1024 + (crc >>> 24)]! ^
      t[768 + bytes[i + 4]!]! ^
      t[512 + bytes[i + 5]!]! ^
      t[256 + bytes[i + 6]!]! ^
      t[bytes[i + 7]!]!;
  }
  for (; i < length; i++) crc = (crc >>> 8) ^ t[(crc ^ bytes[i]!) & 255]!;
  return ~crc >>> 0;
}
