/**
 * Brings weights from the file into the banks. The list of jobs is made once; workers take jobs from it by a shared
 * counter, read native blocks into a staging area and write the interleaved groups to their final place.
 */

import { CONTROL, controlOf } from '../../scheduling/control.ts';
import { gridEntries, MAX_GRID_BYTES } from '../grids.ts';
import { bfloatToFloat, halfToFloat } from '../half.ts';
import type { KernelExports } from './kernels.ts';
import { groupBytes, type Layout } from './layout.ts';

/** A stretch of one tensor. Plain data: it is posted to workers. */
export interface LoadJob {
  /** Bytes of the file. */
  readonly offset: number;
  readonly byteLength: number;
  /** ggml type id. */
  readonly type: number;
  readonly width: number;
  readonly rows: number;
  readonly bank: number;
  readonly pointer: number;
  readonly vector: boolean;
}

/** Fills `target` with the file's bytes from `offset` on. */
export type ReadInto = (target: Uint8Array, offset: number) => Promise<void>;

/** A job reads about this much at a time. */
export const STAGING_BYTES = 1 << 20;

/** Staging bytes that a worker needs: one group of the widest tensor at least, and the grid of a type behind it. */
export function stagingBytes(layout: Layout, groupRows: number): number {
  let largest = STAGING_BYTES;
  for (const { info, weight } of layout.weights.values()) {
    const rowBytes = info.byteLength / (weight.rows * weight.experts);
    largest = Math.max(largest, weight.vector ? info.byteLength : rowBytes * groupRows);
  }
  return Math.ceil(largest / 64) * 64 + MAX_GRID_BYTES;
}

export function planJobs(layout: Layout, kernels: KernelExports): LoadJob[] {
  const groupRows: number = kernels.GROUP_ROWS.value;
  const jobs: LoadJob[] = [];
  for (const { info, weight, bank, pointer } of layout.weights.values()) {
    const type = info.type.id;
    if (weight.vector) {
      jobs.push({
        offset: info.offset,
        byteLength: info.byteLength,
        type,
        width: weight.width,
        rows: 1,
        bank,
        pointer,
        vector: true,
      });
      continue;
    }
    const rowBytes = info.byteLength / (weight.rows * weight.experts);
    const size = groupBytes(kernels, type, weight.width);
    const groups = Math.ceil(weight.rows / groupRows);
    const groupsPerJob = Math.max(1, Math.floor(STAGING_BYTES / (rowBytes * groupRows)));
    for (let expert = 0; expert < weight.experts; expert++) {
      for (let group = 0; group < groups; group += groupsPerJob) {
        const row = group * groupRows;
        const rows = Math.min(groupsPerJob * groupRows, weight.rows - row);
        jobs.push({
          offset: info.offset + (expert * weight.rows + row) * rowBytes,
          byteLength: rows * rowBytes,
          type,
          width: weight.width,
          rows,
          bank,
          pointer: pointer + (expert * groups + group) * size,
          vector: false,
        });
      }
    }
  }
  return jobs;
}

/** Takes jobs until there are none left. */
export async function runJobs(
  jobs: readonly LoadJob[],
  banks: readonly { readonly exports: KernelExports; readonly memory: WebAssembly.Memory }[],
  stagingPointer: number,
  readInto: ReadInto,
  aborted: () => boolean,
): Promise<void> {
  const control = controlOf(banks[0]!.memory);
  for (;;) {
    const job = jobs[Atomics.add(control, CONTROL.NEXT_JOB, 1)];
    if (job === undefined || aborted()) return;
    const { exports, memory } = banks[job.bank]!;
    await readInto(new Uint8Array(memory.buffer, stagingPointer, job.byteLength), job.offset);
    if (job.vector) {
      toFloats(
        new DataView(memory.buffer, stagingPointer, job.byteLength),
        job.type,
        new Float32Array(memory.buffer, job.pointer, job.width),
      );
    } else {
      const groupRows: number = exports.GROUP_ROWS.value;
      const grid = gridEntries(job.type);
      const gridPointer = stagingPointer + Math.ceil(job.byteLength / 64) * 64;
      if (grid !== undefined) new Uint16Array(memory.buffer, gridPointer, grid.length).set(grid);
      const size = groupBytes(exports, job.type, job.width);
      const rowBytes = job.byteLength / job.rows;
      for (let row = 0, group = 0; row < job.rows; row += groupRows, group++) {
        const rows = Math.min(groupRows, job.rows - row);
        const source = stagingPointer + row * rowBytes;
        exports.repack(job.type, source, job.pointer + group * size, job.width, rows, gridPointer);
      }
    }
    Atomics.add(control, CONTROL.LOADED_KIB, Math.round(job.byteLength / 1024));
  }
}

/** A vector of F32, F16 or BF16 as f32. */
function toFloats(source: DataView, type: number, out: Float32Array): void {
  for (let i = 0; i < out.length; i++) {
    if (type === 0) out[i] = source.getFloat32(i * 4, true);
    else if (type === 1) out[i] = halfToFloat(source.getUint16(i * 2, true));
    else out[i] = bfloatToFloat(source.getUint16(i * 2, true));
  }
}
