/** Sound files, damaged in seeded ways: in their fields, entries and bytes. */

import { crc32 } from 'node:zlib';
import { type Fields, findFields } from './gguf-fields.ts';
import type { Random } from './random.ts';

/** A sound file to start from. */
export interface Seed {
  readonly name: string;
  readonly bytes: Buffer;
  readonly fields?: Fields;
}

/** A damaged file: another beginning before the rest of the sound one, so that weights are not copied. */
export interface Mutant {
  readonly head: Buffer;
  readonly tail: Buffer;
}

export function createSeed(name: string, bytes: Buffer): Seed {
  return bytes.toString('latin1', 0, 4) === 'GGUF' ? { name, bytes, fields: findFields(bytes) } : { name, bytes };
}

const EXTREMES = [
  0n,
  1n,
  2n,
  3n,
  5n,
  9n,
  31n,
  255n,
  256n,
  65_535n,
  65_536n,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  2n ** 32n,
  2n ** 40n,
  2n ** 53n,
  2n ** 53n - 1n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 32n,
  2n ** 64n - 1n,
] as const;
const FLOATS = [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, -0, 1e-45, 3.4e38, 1e-6, 0.5] as const;

const u32 = (...values: number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);
const text = (value: string): Buffer => Buffer.concat([u32(value.length, 0), Buffer.from(value, 'latin1')]);

/** Values behind a key, each with its type: sound ones of any kind, and some that only a hostile file has. */
const TYPED_VALUES: readonly (() => Buffer)[] = [
  () => Buffer.concat([u32(0), Buffer.of(7)]),
  () => Buffer.concat([u32(7), Buffer.of(1)]),
  () => u32(4, 0),
  () => u32(4, 1),
  () => u32(4, 7),
  () => u32(4, 0x7fffffff),
  () => u32(5, 0xffffffff),
  () => u32(10, 0xffffffff, 0xffffffff),
  () => u32(11, 0, 0x80000000),
  () => u32(6, 0x7fc00000),
  () => u32(6, 0x7f800000),
  () => u32(6, 0),
  () => u32(12, 0, 0x3ff00000),
  () => Buffer.concat([u32(8), text('')]),
  () => Buffer.concat([u32(8), text('llama')]),
  () => Buffer.concat([u32(8), text('gpt2')]),
  () => Buffer.concat([u32(8), text('\xff\xfe\x80')]),
  () => Buffer.concat([u32(8), text('x'.repeat(100_000))]),
  () => Buffer.concat([u32(8), text('{% for i in range(999999999) %}{{ i }}{% endfor %}')]),
  () => Buffer.concat([u32(8), text('{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}')]),
  () => Buffer.concat([u32(8), text('{{ messages[0].content * 1000000000 }}{% if')]),
  () => u32(9, 8, 0, 0),
  () => u32(9, 4, 0, 0),
  () => u32(9, 4, 3, 0, 1, 2, 3),
  () => u32(9, 9, 1, 0, 4, 0, 0),
  () => Buffer.concat([u32(9, 8, 3, 0), text('a'), text('a'), text('')]),
  () => Buffer.concat([u32(9, 8, 3, 0), text('a b'), text(' '), text('a  b c')]),
  () => Buffer.concat([u32(9, 0, 4, 0), Buffer.of(1, 2, 3, 255)]),
  () => Buffer.concat([u32(9, 6, 3, 0), u32(0x7fc00000, 0xff800000, 0)]),
  () => Buffer.concat([u32(9, 8, 60_000, 0), ...Array.from({ length: 60_000 }, () => text('ab'))]),
];

export function mutate(seed: Seed, random: Random): Mutant {
  const mutant = seed.fields === undefined ? mutateApr(seed.bytes, random) : mutateGguf(seed, seed.fields, random);
  if (random.chance(3)) {
    const cut = random.below(mutant.head.length + mutant.tail.length);
    const { head, tail } = mutant;
    return { head: head.subarray(0, cut), tail: tail.subarray(0, Math.max(0, cut - head.length)) };
  }
  return mutant;
}

function mutateGguf({ bytes }: Seed, fields: Fields, random: Random): Mutant {
  let head = Buffer.from(bytes.subarray(0, fields.headerEnd));
  const tail = bytes.subarray(fields.headerEnd);
  for (let round = random.below(3); round >= 0; round--) {
    const kind = random.below(100);
    // Positions are those of the sound file: after an entry was removed or repeated they point anywhere, which is fine.
    if (kind < 40) overwrite(head, random.pick(fields.values), random);
    else if (kind < 55) overwrite(head, random.pick(fields.structure), random);
    else if (kind < 65) damageByte(head, random);
    else if (kind < 85) {
      const { value, end } = random.pick(fields.entries);
      head = Buffer.concat([head.subarray(0, value), random.pick(TYPED_VALUES)(), head.subarray(end)]);
    } else {
      const which = random.chance(60) ? 'entries' : 'tensors';
      const { start, end } = random.pick(fields[which]);
      const entry = head.subarray(start, end);
      const repeat = random.chance(50);
      head = Buffer.concat([head.subarray(0, start), ...(repeat ? [entry, entry] : []), head.subarray(end)]);
      const count = which === 'tensors' ? 8 : 16;
      if (random.chance(90) && head.length >= 24) {
        head.writeBigUInt64LE(BigInt.asUintN(64, head.readBigUInt64LE(count) + (repeat ? 1n : -1n)), count);
      }
    }
  }
  return { head, tail };
}

function overwrite(bytes: Buffer, { at, size }: { at: number; size: 1 | 2 | 4 | 8 }, random: Random): void {
  if (at + size > bytes.length) return;
  const kind = random.below(10);
  if (kind === 0 && size === 4) {
    bytes.writeFloatLE(random.pick(FLOATS), at);
    return;
  }
  const current = size === 8 ? bytes.readBigUInt64LE(at) : BigInt(bytes.readUIntLE(at, size));
  let value: bigint = random.pick(EXTREMES);
  if (kind === 1) value = current + 1n;
  else if (kind === 2) value = current - 1n;
  else if (kind === 3) value = current * 2n;
  else if (kind === 4) value = current / 2n;
  else if (kind === 5) value = BigInt(random.below(64));
  value = BigInt.asUintN(size * 8, value);
  if (size === 8) bytes.writeBigUInt64LE(value, at);
  else bytes.writeUIntLE(Number(value), at, size);
}

function damageByte(bytes: Buffer, random: Random): void {
  if (bytes.length === 0) return;
  const at = random.below(bytes.length);
  bytes[at] = random.chance(50) ? bytes[at]! ^ (1 << random.below(8)) : random.below(256);
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const VALUES: readonly (() => Json)[] = [
  () => null,
  () => true,
  () => 0,
  () => -1,
  () => 0.5,
  () => 1e308,
  () => 2 ** 31,
  () => 2 ** 53,
  () => '',
  () => '\0\uD800\uFFFF',
  () => 'x'.repeat(10_000),
  () => '18446744073709551615',
  () => 'NaN',
  () => [],
  () => [[]],
  () => ({}),
  () => ({ base64: 'AA' }),
  () => ({ type: 'array', items: 'string', same_as: 'gguf' }),
];

/** Header, metadata and index are damaged apart and put together again, mostly with a right checksum. */
function mutateApr(bytes: Buffer, random: Random): Mutant {
  const indexOffset = Number(bytes.readBigUInt64LE(24));
  const dataOffset = Number(bytes.readBigUInt64LE(32));
  let text = bytes.subarray(64, 64 + bytes.readUInt32LE(20));
  const index = Buffer.from(bytes.subarray(indexOffset, dataOffset));
  const header = Buffer.from(bytes.subarray(0, 64));
  const parts = random.below(7) + 1;
  if (parts & 1) {
    const json = JSON.parse(text.toString('utf8')) as Json;
    for (let round = random.below(3); round >= 0; round--) damageJson(json, random);
    text = Buffer.from(JSON.stringify(json));
    if (random.chance(10)) {
      text = Buffer.from(text);
      damageByte(text, random);
    }
  }
  if (parts & 2) {
    for (let round = random.below(3); round >= 0; round--) {
      if (random.chance(50)) damageByte(index, random);
      else overwrite(index, { at: random.below(index.length), size: random.pick([1, 2, 8] as const) }, random);
    }
  }
  const padding = Buffer.alloc((64 - (text.length % 64)) % 64);
  const shift = text.length + padding.length - (indexOffset - 64);
  header.writeUInt32LE(text.length, 20);
  header.writeBigUInt64LE(BigInt(indexOffset + shift), 24);
  header.writeBigUInt64LE(BigInt(dataOffset + shift), 32);
  if (parts & 4) {
    const field = random.pick([
      { at: 4, size: 1 },
      { at: 6, size: 2 },
      { at: 8, size: 4 },
      { at: 12, size: 8 },
      { at: 20, size: 4 },
      { at: 24, size: 8 },
      { at: 32, size: 8 },
    ] as const);
    overwrite(header, field, random);
  }
  if (random.chance(95)) {
    header.writeUInt32LE(crc32(Buffer.concat([header.subarray(0, 40), header.subarray(44)])), 40);
  }
  return { head: Buffer.concat([header, text, padding, index]), tail: bytes.subarray(dataOffset) };
}

/** Replaces, removes or renames something below `json`; long lists are entered rarely. */
function damageJson(json: Json, random: Random): void {
  let at: Json = json;
  for (let depth = 0; depth < 8; depth++) {
    if (typeof at !== 'object' || at === null) return;
    const keys: readonly string[] = Object.keys(at);
    if (keys.length === 0) return;
    const key: string = random.pick(keys);
    const holder = at as { [key: string]: Json };
    const child: Json = holder[key] as Json;
    const isLeaf = typeof child !== 'object' || child === null;
    if (isLeaf || random.chance(Array.isArray(child) ? 70 : 15)) {
      if (random.chance(25) && !Array.isArray(at)) delete holder[key];
      else holder[key] = random.pick(VALUES)();
      return;
    }
    at = child;
  }
}
