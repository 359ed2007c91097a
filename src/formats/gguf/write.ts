/** Writes a model as a GGUF file, version 3. */

import { AprError } from '../../errors.ts';
import { type ByteSink, copyPadded, padded } from '../byte-sink.ts';
import { ByteWriter } from '../byte-writer.ts';
import type { Metadata } from '../metadata.ts';
import type { ModelFile } from '../model-file.ts';
import { type NumberType, numberTypeOf, VALUE_TYPES, type ValueType } from './value-types.ts';

const VERSION = 3;
const DEFAULT_ALIGNMENT = 32;

/**
 * Tensors keep their bytes and their order, metadata its types and its order.
 * @returns bytes written
 * @throws AprError BAD_FORMAT for an alignment that is none, or what the sink and the source throw
 */
export async function writeGguf({ metadata, tensors, source }: ModelFile, sink: ByteSink): Promise<number> {
  const alignment = metadata.uint('general.alignment') ?? DEFAULT_ALIGNMENT;
  if (alignment < 1 || alignment > 1 << 20 || (alignment & (alignment - 1)) !== 0) {
    const message = `${source.name}: metadata "general.alignment" is ${alignment}, expected a power of two up to ${1 << 20}`;
    throw new AprError('BAD_FORMAT', message);
  }
  const keys = [...metadata.keys()];
  const writer = new ByteWriter().text('GGUF').u32(VERSION).u64(tensors.size).u64(keys.length);
  for (const key of keys) writeEntry(writer, metadata, key);
  let dataSize = 0;
  for (const { name, shape, type, byteLength } of tensors.values()) {
    writeString(writer, new TextEncoder().encode(name));
    writer.u32(shape.length);
    for (const size of shape) writer.u64(size);
    writer.u32(type.id).u64(dataSize);
    dataSize += padded(byteLength, alignment);
  }
  // A vocabulary without weights ends with its header.
  if (tensors.size > 0) writer.pad(alignment);
  await sink.write(writer.bytes());
  for (const tensor of tensors.values()) await copyPadded(sink, source, tensor, alignment);
  return writer.length + dataSize;
}

function writeEntry(writer: ByteWriter, metadata: Metadata, key: string): void {
  const type = metadata.typeOf(key)!;
  const value = metadata.value(key)!;
  writeString(writer, new TextEncoder().encode(key));
  writeType(writer, type);
  if (typeof value === 'string') writeString(writer, metadata.stringBytes(key)!);
  else if (typeof value === 'boolean') writer.u8(Number(value));
  else if (typeof value !== 'object') writeNumber(writer, type as NumberType, value);
  else if (value.kind === 'strings') {
    writeType(writer, 'string').u64(value.length);
    const { bytes, starts, ends } = value;
    for (let i = 0; i < value.length; i++) writeString(writer, bytes.subarray(starts[i], ends[i]));
  } else if (value.kind === 'booleans') writeType(writer, 'bool').u64(value.length).raw(value.values);
  else {
    const items = numberTypeOf(value.values);
    writeType(writer, items).u64(value.length);
    for (const each of value.values as Iterable<number | bigint>) writeNumber(writer, items, each);
  }
}

function writeType(writer: ByteWriter, type: ValueType): ByteWriter {
  return writer.u32(VALUE_TYPES.indexOf(type));
}

function writeString(writer: ByteWriter, bytes: Uint8Array): void {
  writer.u64(bytes.length).raw(bytes);
}

function writeNumber(writer: ByteWriter, type: NumberType, value: number | bigint): void {
  switch (type) {
    case 'uint8':
    case 'int8':
      writer.u8(Number(value));
      break;
    case 'uint16':
    case 'int16':
      writer.u16(Number(value));
      break;
    case 'uint32':
    case 'int32':
      writer.u32(Number(value));
      break;
    case 'uint64':
    case 'int64':
      writer.u64(BigInt.asUintN(64, BigInt(value)));
      break;
    case 'float32':
      writer.f32(Number(value));
      break;
    case 'float64':
      writer.f64(Number(value));
      break;
  }
}
