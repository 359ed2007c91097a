/** The part of a GGUF header that says which tensors there are and where their bytes lie. */

import { AprError } from '../../errors.ts';
import { type GgmlType, ggmlTypeById, removedGgmlType, rowBytes } from '../ggml-types.ts';
import type { TensorInfo } from '../model-file.ts';
import { refuseOverlaps } from '../overlaps.ts';
import { printable } from '../printable.ts';
import type { HeaderReader } from './header-reader.ts';
import { readName } from './name.ts';

/** Bytes of the smallest entry: name's length and one character, dimension count, one size, type, offset. */
export const MIN_TENSOR_BYTES = 4 + 1 + 4 + 4 + 4 + 8;
/** As ggml has it. */
const MAX_DIMENSIONS = 4;
const MAX_ALIGNMENT = 1 << 20;
const MAX_VALUES = BigInt(Number.MAX_SAFE_INTEGER);

export interface DeclaredTensor {
  readonly name: string;
  readonly type: GgmlType;
  readonly shape: readonly number[];
  readonly byteLength: number;
  /** From the start of the data section. */
  readonly offset: bigint;
}

/**
 * Reads `count` entries at the cursor.
 * A size of 0 is let through: some files declare an empty `output.weight` for a tied head. Whether a model may have an
 * empty tensor is for the contract to say.
 * @throws AprError BAD_FORMAT, UNSUPPORTED for a tensor type that is not known
 */
export async function readTensorIndex(reader: HeaderReader, count: number): Promise<DeclaredTensor[]> {
  const names = new Set<string>();
  const tensors: DeclaredTensor[] = [];
  for (let i = 0; i < count; i++) {
    const name = await readName(reader, `the name of tensor ${i}`);
    const what = `tensor "${printable(name)}"`;
    if (names.has(name)) throw bad(reader, `${what} stands twice in the file`);
    names.add(name);
    await reader.ensure(4, what);
    const dimensions = reader.u32();
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
      throw bad(reader, `${what} has ${dimensions} dimensions, expected 1 to ${MAX_DIMENSIONS}`);
    }
    await reader.ensure(dimensions * reader.sizeBytes + 12, what);
    const sizes = Array.from({ length: dimensions }, () => reader.size());
    const type = typeOf(reader, reader.u32(), name);
    // Sizes are checked one by one as well: with a 0 among them the product would hide the others.
    if (sizes.some((size) => size > MAX_VALUES) || sizes.reduce((product, size) => product * size, 1n) > MAX_VALUES) {
      throw bad(reader, `${what} declares ${sizes.join(' × ')} values, more than any file holds`);
    }
    const shape = sizes.map(Number);
    const [width = 0, ...others] = shape;
    if (width % type.blockSize !== 0) {
      throw bad(
        reader,
        `${what} has rows of ${width} values, expected a multiple of the ${type.blockSize} in a ${type.name} block`,
      );
    }
    const byteLength = rowBytes(type, width) * others.reduce((product, size) => product * size, 1);
    tensors.push({ name, type, shape, byteLength, offset: reader.u64() });
  }
  return tensors;
}

function typeOf(reader: HeaderReader, id: number, tensor: string): GgmlType {
  const type = ggmlTypeById(id);
  if (type !== undefined) return type;
  const removed = removedGgmlType(id);
  const found = removed === undefined ? `${id}` : `${id} (${removed})`;
  const reason =
    removed === undefined ? 'which ggml does not define' : 'which ggml has withdrawn; quantise the model anew';
  const message = `${reader.source.name}: tensor "${printable(tensor)}" has type ${found}, ${reason}`;
  throw new AprError('UNSUPPORTED', message, { tensor, found });
}

/**
 * Checks where the tensors' bytes lie, and makes their offsets absolute.
 * @param headerEnd first byte behind the index
 * @throws AprError BAD_FORMAT
 */
export function placeTensors(
  reader: HeaderReader,
  declared: readonly DeclaredTensor[],
  headerEnd: number,
  alignment: number,
): Map<string, TensorInfo> {
  if (alignment < 1 || alignment > MAX_ALIGNMENT || (alignment & (alignment - 1)) !== 0) {
    throw bad(reader, `metadata "general.alignment" is ${alignment}, expected a power of two up to ${MAX_ALIGNMENT}`);
  }
  const start = Math.ceil(headerEnd / alignment) * alignment;
  const placed: TensorInfo[] = [];
  let end = 0n;
  let last = '';
  for (const { name, offset, ...rest } of declared) {
    if (offset % BigInt(alignment) !== 0n) {
      const what = `tensor "${printable(name)}"`;
      const message = `${what} lies at offset ${offset}, expected a multiple of the alignment ${alignment}`;
      throw bad(reader, message);
    }
    const tensorEnd = BigInt(start) + offset + BigInt(rest.byteLength);
    if (tensorEnd > end) {
      end = tensorEnd;
      last = name;
    }
    placed.push({ name, ...rest, offset: start + Number(offset) });
  }
  const { size } = reader.source;
  if (end > BigInt(size)) {
    const message =
      `the file is truncated or its index is damaged: tensor "${printable(last)}" ends at byte ${end}, ` +
      `but the file has ${size} bytes; fetch it again`;
    throw bad(reader, message);
  }
  refuseOverlaps(reader.source.name, placed);
  return new Map(placed.map((tensor) => [tensor.name, tensor]));
}

function bad(reader: HeaderReader, reason: string): AprError {
  return new AprError('BAD_FORMAT', `${reader.source.name}: ${reason}`);
}
