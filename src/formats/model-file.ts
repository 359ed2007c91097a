import type { ByteSource } from './byte-source.ts';
import type { GgmlType } from './ggml-types.ts';
import type { Metadata } from './metadata.ts';

/** A tensor as the file's index declares it. Offsets and sizes have been checked against the file's length. */
export interface TensorInfo {
  readonly name: string;
  readonly type: GgmlType;
  /** Sizes in ggml order: the first is the row length, the fastest to vary. */
  readonly shape: readonly number[];
  /** First byte, from the start of the source. */
  readonly offset: number;
  readonly byteLength: number;
}

/** A parsed model file: everything but the weights' bytes. */
export interface ModelFile {
  readonly format: 'gguf' | 'apr';
  /** Format version as the file states it. */
  readonly version: number;
  readonly source: ByteSource;
  readonly metadata: Metadata;
  /** In the file's order. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
}
