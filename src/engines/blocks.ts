/** Single blocks of a tensor, with their bytes named and their values decoded. */

import type { BlockLayout } from '../backends/reference/block-layout.ts';
import { dequantize } from '../backends/reference/dequantize.ts';
import { blockLayout } from '../backends/reference/describe-block.ts';
import { AprError } from '../errors.ts';
import type { ModelFile, TensorInfo } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import { locateParts } from '../formats/parts-source.ts';
import type { Platform } from '../platform/platform.ts';
import { isDecodable } from './tensor-values.ts';

/** Types without blocks are shown so many values at a time. */
const PLAIN_VALUES = 32;
/** Blocks of one answer at most. */
const MOST_BLOCKS = 65_536;

export interface BlockField {
  readonly name: string;
  /** From the start of the block. */
  readonly offset: number;
  readonly bytes: number;
  /** What the bytes stand for, of a factor of the whole block. */
  readonly value?: number;
}

export interface TensorBlock {
  /** Counts the tensor's blocks from 0. */
  readonly index: number;
  /** First byte, from the start of the file. */
  readonly offset: number;
  /** Of its first value: the row, counted over all matrices of the tensor, and the place in it. */
  readonly row: number;
  readonly column: number;
  /** The bytes as hexadecimal digits. */
  readonly hex: string;
  readonly fields: readonly BlockField[];
  /** Null for types without groups, as all that follows but the values. */
  readonly group_size: number | null;
  /** Stored integers of each group, where the type has them. */
  readonly scale_codes: readonly number[] | null;
  readonly minimum_codes: readonly number[] | null;
  /** value = scale of its group × quant + offset of its group (0 where this is null). */
  readonly scales: readonly number[] | null;
  readonly offsets: readonly number[] | null;
  readonly quants: readonly number[] | null;
  /** Null for a type without a decoder; NaN and infinities are null in JSON. */
  readonly values: readonly number[] | null;
}

export interface BlockListing {
  /** The source as it was given. */
  readonly model: string;
  readonly tensor: string;
  readonly dtype: string;
  /** ggml order: the row length first. */
  readonly shape: readonly number[];
  /** Values and bytes of a block, and blocks of the tensor. */
  readonly block_size: number;
  readonly block_bytes: number;
  readonly block_count: number;
  readonly blocks: readonly TensorBlock[];
}

export interface ReadBlocksOptions {
  /** First block, counted from 0. Default 0. */
  readonly block?: number;
  /** In place of `block`: the first block of this row, counted over all matrices of the tensor. */
  readonly row?: number;
  /** Blocks to read, fewer where the tensor ends before. Default 1. */
  readonly limit?: number;
}

/**
 * Blocks of one tensor.
 * @throws AprError NOT_FOUND for the file or the tensor, USAGE for a block beyond the tensor; BAD_FORMAT, UNSUPPORTED, IO
 */
export async function readBlocksOf(
  platform: Pick<Platform, 'openSource'>,
  source: string,
  name: string,
  options: ReadBlocksOptions = {},
): Promise<BlockListing> {
  const bytes = await platform.openSource(source);
  try {
    const file = await openModel(bytes);
    const tensor = file.tensors.get(name);
    if (tensor === undefined) {
      const message = `${source}: there is no tensor "${name}" among the ${file.tensors.size} of the file`;
      throw new AprError('NOT_FOUND', message, { tensor: name });
    }
    const { type, shape, byteLength } = tensor;
    const layout = blockLayout(type.name);
    // Values of types without blocks are handled in pieces of a row.
    const perBlock = type.blockSize === 1 ? PLAIN_VALUES : type.blockSize;
    const blockBytes = (perBlock / type.blockSize) * type.blockBytes;
    const count = Math.ceil(byteLength / blockBytes);
    const first = firstBlock(tensor, options, perBlock, count);
    const blocks: TensorBlock[] = [];
    const last = Math.min(count, first + Math.min(options.limit ?? 1, MOST_BLOCKS));
    for (let index = first; index < last; index++) {
      blocks.push(await readBlock(file, tensor, { index, perBlock, blockBytes, layout }));
    }
    return {
      model: source,
      tensor: name,
      dtype: type.name,
      shape,
      block_size: perBlock,
      block_bytes: blockBytes,
      block_count: count,
      blocks,
    };
  } finally {
    await bytes.close();
  }
}

function firstBlock(
  { name, shape }: TensorInfo,
  { block, row, limit }: ReadBlocksOptions,
  perBlock: number,
  count: number,
): number {
  if (count === 0) throw new AprError('USAGE', `tensor "${name}" is empty: it has no block to show`, { tensor: name });
  const check = (option: string, value: number, end: number): void => {
    if (Number.isSafeInteger(value) && value >= 0 && value < end) return;
    const expected = `a whole number from 0 to ${end - 1}`;
    throw new AprError('USAGE', `${option} is ${value}, expected ${expected}`, { option, found: value });
  };
  if (limit !== undefined) check('limit', limit, MOST_BLOCKS + 1);
  if (row === undefined) {
    if (block !== undefined) check('block', block, count);
    return block ?? 0;
  }
  if (block !== undefined) throw new AprError('USAGE', 'block and row exclude each other; give one of them');
  const width = shape[0] ?? 1;
  check(
    'row',
    row,
    shape.slice(1).reduce((product, size) => product * size, 1),
  );
  return Math.floor((row * width) / perBlock);
}

interface BlockPlace {
  readonly index: number;
  readonly perBlock: number;
  readonly blockBytes: number;
  readonly layout: BlockLayout | undefined;
}

async function readBlock(file: ModelFile, tensor: TensorInfo, place: BlockPlace): Promise<TensorBlock> {
  const { index, perBlock, blockBytes, layout } = place;
  const { type, shape } = tensor;
  const start = index * blockBytes;
  const bytes = await file.source.read(tensor.offset + start, Math.min(blockBytes, tensor.byteLength - start));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const values = new Float32Array((bytes.length / type.blockBytes) * type.blockSize);
  const decodable = isDecodable(tensor);
  if (decodable) dequantize(type, view, 0, values.length, values);
  const parts = layout?.read(view, 0);
  let at = 0;
  const fields = Object.entries(layout?.fields ?? { values: bytes.length }).map(([name, size]): BlockField => {
    const field = { name, offset: at, bytes: size };
    at += size;
    const value = parts?.factors[name];
    return value === undefined ? field : { ...field, value };
  });
  const { parts: files } = file.source;
  const [piece] = files === undefined ? [] : locateParts(files, tensor.offset + start, bytes.length);
  const width = Math.max(1, shape[0] ?? 1);
  return {
    index,
    offset: piece?.offset ?? tensor.offset + start,
    row: Math.floor((index * perBlock) / width),
    column: (index * perBlock) % width,
    hex: Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''),
    fields,
    group_size: layout?.groupSize ?? null,
    scale_codes: parts?.scaleCodes ?? null,
    minimum_codes: parts?.minimumCodes ?? null,
    scales: parts?.scales ?? null,
    offsets: parts?.offsets ?? null,
    quants: parts?.quants ?? null,
    values: decodable ? [...values] : null,
  };
}
