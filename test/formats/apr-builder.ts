/** Writes .apr files for tests as another program would, right or wrong; shares nothing with what is tested. */

import { crc32 } from 'node:zlib';

export interface AprTensor {
  readonly name: string | Uint8Array;
  readonly dtype: number;
  /** Row length last. */
  readonly dims: readonly (number | bigint)[];
  readonly data?: Uint8Array;
  /** In place of the true ones. */
  readonly size?: number | bigint;
  readonly offset?: number | bigint;
}

export interface AprParts {
  /** Default: what a tiny llama without a tokenizer has. Text is written as it is. */
  readonly json?: unknown;
  readonly tensors?: readonly AprTensor[];
  /** Default ROW_MAJOR. */
  readonly flags?: number;
  readonly magic?: string;
  readonly major?: number;
  /** Do not sort the index. */
  readonly unsorted?: boolean;
  /** Changes the header before its checksum is made. */
  readonly header?: (view: DataView) => void;
  /** Changes the whole file. */
  readonly damage?: (bytes: Buffer) => void;
}

const pad = (size: number): number => Math.ceil(size / 64) * 64;

export function buildApr(parts: AprParts = {}): Uint8Array {
  const { json = {}, tensors = [], flags = 1 << 10, magic = 'APR\0', major = 2 } = parts;
  const text = Buffer.from(typeof json === 'string' ? json : JSON.stringify(json));
  const placed: { readonly tensor: AprTensor; readonly offset: number }[] = [];
  let dataSize = 0;
  for (const tensor of tensors) {
    placed.push({ tensor, offset: dataSize });
    dataSize += pad(tensor.data?.length ?? 0);
  }
  const bytesOf = (name: string | Uint8Array): Buffer => Buffer.from(name as Uint8Array);
  const sorted = [...placed];
  if (!parts.unsorted) sorted.sort((a, b) => Buffer.compare(bytesOf(a.tensor.name), bytesOf(b.tensor.name)));
  const index = Buffer.concat(
    sorted.map(({ tensor, offset }) => {
      const name = bytesOf(tensor.name);
      const entry = Buffer.alloc(2 + name.length + 2 + tensor.dims.length * 8 + 16);
      let at = entry.writeUInt16LE(name.length);
      at += name.copy(entry, at);
      at = entry.writeUInt8(tensor.dtype, at);
      at = entry.writeUInt8(tensor.dims.length, at);
      for (const size of tensor.dims) at = entry.writeBigUInt64LE(BigInt(size), at);
      at = entry.writeBigUInt64LE(BigInt(tensor.offset ?? offset), at);
      entry.writeBigUInt64LE(BigInt(tensor.size ?? tensor.data?.length ?? 0), at);
      return entry;
    }),
  );
  const indexOffset = 64 + pad(text.length);
  const dataOffset = indexOffset + pad(index.length);
  const bytes = Buffer.alloc(dataOffset + dataSize + 4);
  bytes.write(magic, 'latin1');
  bytes.writeUInt8(major, 4);
  bytes.writeUInt16LE(flags, 6);
  bytes.writeUInt32LE(tensors.length, 8);
  bytes.writeBigUInt64LE(64n, 12);
  bytes.writeUInt32LE(text.length, 20);
  bytes.writeBigUInt64LE(BigInt(indexOffset), 24);
  bytes.writeBigUInt64LE(BigInt(dataOffset), 32);
  parts.header?.(new DataView(bytes.buffer, bytes.byteOffset, 64));
  bytes.writeUInt32LE(crc32(Buffer.concat([bytes.subarray(0, 40), bytes.subarray(44, 64)])), 40);
  text.copy(bytes, 64);
  index.copy(bytes, indexOffset);
  for (const { tensor, offset } of placed) if (tensor.data !== undefined) bytes.set(tensor.data, dataOffset + offset);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, -4)), bytes.length - 4);
  parts.damage?.(bytes);
  // Memory of its own, not of Node's pool.
  return Uint8Array.from(bytes);
}

/** Metadata of a llama of that many layers, with a vocabulary of byte-level BPE. */
export function foreignJson(extra: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    architecture: 'llama',
    hidden_size: 32,
    num_layers: 1,
    num_heads: 2,
    num_kv_heads: 1,
    intermediate_size: 64,
    max_position_embeddings: 128,
    rope_theta: 10_000,
    rms_norm_eps: 1e-5,
    'tokenizer.vocabulary': ['a', 'b', 'ab', '<|end|>'],
    'tokenizer.merges': ['a b'],
    'tokenizer.model_type': 'bpe',
    'tokenizer.pre_type': 'default',
    'tokenizer.eos_token_id': 3,
    ...extra,
  };
}
