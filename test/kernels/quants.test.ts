import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { GgmlTypeName } from '../../src/formats/ggml-types.ts';
import { ggmlType, rowBytes } from '../../src/formats/ggml-types.ts';
import { type KernelHost, loadKernels, supports, VARIANTS } from './kernel-host.ts';
import {
  activations,
  mulMat,
  placeActivations,
  placeMatrix,
  random,
  referenceProduct,
  referenceRow,
  TYPES,
} from './quants-data.ts';

const PAGES = 640;
const hosts: KernelHost[] = [];
for (const variant of VARIANTS) {
  if (await supports(variant)) hosts.push(await loadKernels(variant, PAGES));
  else console.log(`skipped: ${variant} (this runtime does not accept it by default)`);
}

/** Widths of a type: one block, one segment and a piece, more than one segment. */
function widths(name: GgmlTypeName): readonly number[] {
  const block = ggmlType(name).blockSize;
  if (block === 1) return [1, 37, 300];
  return block === 256 ? [256, 768] : [block, 256 + block, 512];
}

function identity(count: number): [number, number][] {
  return Array.from({ length: count }, (_, i) => [i, i]);
}

function sameBits(actual: Float32Array, expected: Float32Array, what: string): void {
  const a = new Uint32Array(actual.buffer, actual.byteOffset, actual.length);
  const b = new Uint32Array(expected.buffer, expected.byteOffset, expected.length);
  assert.is(a.length, b.length, what);
  for (let i = 0; i < a.length; i++) {
    if (a[i] !== b[i]) assert.unreachable(`${what}: value ${i} is ${actual[i]}, expected ${expected[i]}`);
  }
}

/** Runs a case and gives its memory back, having checked that nothing was written behind an allocation. */
function scoped(host: KernelHost, run: () => void): void {
  const release = host.mark();
  run();
  assert.ok(host.intact(), 'wrote behind a buffer');
  release();
}

for (const host of hosts) {
  for (const name of TYPES) {
    const label = `${host.variant} ${name}`;

    test(`${label}: an interleaved row reads as the native row and as the reference reads it`, () => {
      for (const width of widths(name)) {
        for (const rows of [1, 5, 16, 17]) {
          scoped(host, () => {
            const matrix = placeMatrix(host, name, width, rows, width + rows);
            const size = host.exports.group_bytes(matrix.type.id, width) >>> 0;
            const out = host.alloc(width * 4);
            const native = host.alloc(rowBytes(matrix.type, width));
            for (let row = 0; row < Math.ceil(rows / 16) * 16; row++) {
              host.exports.dequantize(matrix.type.id, out, matrix.pointer + (row >> 4) * size, row & 15, width);
              const actual = Float32Array.from(host.floats(out, width));
              if (row >= rows) {
                assert.ok(
                  actual.every((value) => value === 0),
                  'missing rows are zero',
                );
                continue;
              }
              const bytes = rowBytes(matrix.type, width);
              host.bytes(native, bytes).set(matrix.native.subarray(row * bytes, (row + 1) * bytes));
              host.exports.dequantize_native(matrix.type.id, out, native, width, matrix.grid);
              sameBits(actual, Float32Array.from(host.floats(out, width)), `${label} row ${row} of width ${width}`);
              // The reference rounds once where f32 code rounds twice.
              referenceRow(matrix, row).forEach((value, k) => {
                assert.ok(Math.abs(value - actual[k]!) <= 1e-6 * Math.max(1, Math.abs(value)), `${label} column ${k}`);
              });
            }
          });
        }
      }
    });

    test(`${label}: products are those of the reference, for decode and for tiles`, () => {
      for (const width of widths(name)) {
        for (const rows of [1, 5, 17, 40]) {
          scoped(host, () => {
            const matrix = placeMatrix(host, name, width, rows, 3 * width + rows);
            for (const count of [1, 9]) {
              const x = activations(width, count, 77 + count);
              const placed = placeActivations(host, matrix.type, x, width, count);
              const actual = mulMat(host, matrix, placed, count, identity(count), count);
              const expected = referenceProduct(matrix, x);
              for (let i = 0; i < count; i++) {
                for (let r = 0; r < rows; r++) {
                  const { value, magnitude } = expected(i, r);
                  const error = Math.abs(actual[i * rows + r]! - value);
                  if (!(error <= 2e-6 * magnitude + 1e-30)) {
                    assert.unreachable(
                      `${label} ${rows}×${width}, ${count} rows: [${i}, ${r}] off by ${error} of ${value}`,
                    );
                  }
                }
              }
            }
          });
        }
      }
    });

    test(`${label}: any number of rows gives the same bits as one row at a time`, () => {
      for (const width of widths(name)) {
        scoped(host, () => {
          const rows = 21;
          const matrix = placeMatrix(host, name, width, rows, 5 * width);
          const most = 133;
          const x = activations(width, most, 99);
          const single = new Float32Array(most * rows);
          for (let i = 0; i < most; i++) {
            scoped(host, () => {
              const one = placeActivations(host, matrix.type, x.subarray(i * width, (i + 1) * width), width, 1);
              single.set(mulMat(host, matrix, one, 1, [[0, 0]], 1), i * rows);
            });
          }
          for (const count of [2, 3, 4, 5, 6, 7, 8, 9, 33, most]) {
            scoped(host, () => {
              const placed = placeActivations(host, matrix.type, x.subarray(0, count * width), width, count);
              const actual = mulMat(host, matrix, placed, count, identity(count), count);
              sameBits(actual, single.slice(0, count * rows), `${label} width ${width}, ${count} rows`);
            });
          }
        });
      }
    });

    test(`${label}: a list picks rows and places them`, () => {
      for (const count of [3, 12]) {
        scoped(host, () => {
          const width = widths(name)[1]!;
          const rows = 19;
          const matrix = placeMatrix(host, name, width, rows, 11);
          const x = activations(width, 7, 12);
          const placed = placeActivations(host, matrix.type, x, width, 7);
          const all = mulMat(host, matrix, placed, 7, identity(7), 7);
          // Row 13 − i of dst gets row 3 i mod 7 of x; rows that nobody names keep what they held.
          const pairs = Array.from({ length: count }, (_, i): [number, number] => [(3 * i) % 7, 13 - i]);
          const actual = mulMat(host, matrix, placed, 7, pairs, 14);
          const expected = new Float32Array(14 * rows).fill(-12345);
          for (const [from, to] of pairs) expected.set(all.subarray(from * rows, (from + 1) * rows), to * rows);
          sameBits(actual, expected, label);
        });
      }
    });

    test(`${label}: embedding rows`, () => {
      scoped(host, () => {
        const width = widths(name)[1]!;
        const matrix = placeMatrix(host, name, width, 35, 21);
        const tokens = [34, 0, 16, 15, 34];
        const list = host.alloc(tokens.length * 4);
        host.ints(list, tokens.length).set(tokens);
        const dst = host.alloc(tokens.length * width * 4);
        host.exports.embed(0, tokens.length, host.scratch, matrix.type.id, dst, matrix.pointer, width, list);
        tokens.forEach((row, i) => {
          const expected = referenceRow(matrix, row);
          const actual = host.floats(dst + i * width * 4, width);
          expected.forEach((value, k) => {
            assert.ok(Math.abs(value - actual[k]!) <= 1e-6 * Math.max(1, Math.abs(value)), `token ${row} column ${k}`);
          });
        });
      });
    });

    test(`${label}: experts give what each gives alone`, () => {
      scoped(host, () => {
        const [experts, slots, rows, width] = [6, 2, 21, widths(name)[1]!];
        const matrix = placeMatrix(host, name, width, 32 * experts, 31);
        const stride = 2 * (host.exports.group_bytes(matrix.type.id, width) >>> 0);
        const tokens = 19;
        const next = random(4);
        const ids: number[] = [];
        for (let i = 0; i < tokens; i++) {
          // Expert 2 gets nothing, expert 5 something from every row.
          const other = [0, 1, 3, 4][Math.floor(next() * 4)] as number;
          ids.push(...(next() < 0.5 ? [other, 5] : [5, other]));
        }
        const routing = host.alloc(tokens * slots * 8);
        for (let i = 0; i < tokens; i++)
          host.ints(routing + i * slots * 8, slots).set(ids.slice(i * slots, (i + 1) * slots));
        const plan = host.alloc(host.exports.plan_bytes(tokens, slots, experts));
        host.exports.route_plan(0, 1, host.scratch, plan, routing, tokens, slots, experts);
        assert.is(host.ints(plan, 1)[0], 5);
        for (const perSlot of [0, 1]) {
          const xRows = perSlot ? tokens * slots : tokens;
          const placed = placeActivations(host, matrix.type, activations(width, xRows, 5), width, xRows);
          const dst = host.alloc(tokens * slots * rows * 4);
          const groups = Math.ceil(rows / 16);
          for (let item = experts * groups - 1; item >= 0; item--) {
            host.exports.mul_mat_id(
              item,
              item + 1,
              host.scratch,
              matrix.type.id,
              dst,
              rows,
              matrix.pointer,
              stride,
              width,
              rows,
              placed,
              xRows,
              plan,
              perSlot,
            );
          }
          const actual = Float32Array.from(host.floats(dst, tokens * slots * rows));
          for (let expert = 0; expert < experts; expert++) {
            const one = { ...matrix, rows, pointer: matrix.pointer + expert * stride };
            const all = mulMat(host, one, placed, xRows, identity(xRows), xRows);
            ids.forEach((id, i) => {
              if (id !== expert) return;
              const row = perSlot ? i : Math.floor(i / slots);
              sameBits(
                actual.slice(i * rows, (i + 1) * rows),
                all.slice(row * rows, (row + 1) * rows),
                `${label} pair ${i}`,
              );
            });
          }
        }
      });
    });
  }

  test(`${host.variant}: activations of zero, and of both signs, quantise as the reference says`, () => {
    for (const name of ['Q8_0', 'Q4_K'] as const) {
      scoped(host, () => {
        const x = new Float32Array(512);
        // Blocks of zeros, one with +a and −a, one whose scale as a half is zero.
        x.set([3, -3, 0.5, 1.5, 2.5, -1.4999], 256);
        x.set([1e-36, -2e-37], 300);
        const matrix = placeMatrix(host, name, 512, 3, 8);
        const placed = placeActivations(host, matrix.type, x, 512, 1);
        const actual = mulMat(host, matrix, placed, 1, [[0, 0]], 1);
        const expected = referenceProduct(matrix, x);
        for (let r = 0; r < 3; r++) {
          const { value, magnitude } = expected(0, r);
          assert.ok(Math.abs(actual[r]! - value) <= 2e-6 * magnitude, `${name} row ${r}: ${actual[r]} for ${value}`);
        }
      });
    }
  });

  test(`${host.variant}: activations too small for a scale count as zero`, () => {
    for (const name of ['Q8_0', 'Q4_K'] as const) {
      scoped(host, () => {
        const x = new Float32Array(256);
        x.set([1e-40, -2e-41], 100);
        const matrix = placeMatrix(host, name, 256, 1, 8);
        const placed = placeActivations(host, matrix.type, x, 256, 1);
        assert.ok(Math.abs(mulMat(host, matrix, placed, 1, [[0, 0]], 1)[0]!) < 1e-30, name);
      });
    }
  });

  test(`${host.variant}: a NaN among the activations shows in the result`, () => {
    for (const name of TYPES) {
      scoped(host, () => {
        const x = activations(512, 1, 1);
        x[300] = Number.NaN;
        const matrix = placeMatrix(host, name, 512, 2, 8);
        const placed = placeActivations(host, matrix.type, x, 512, 1);
        assert.ok(Number.isNaN(mulMat(host, matrix, placed, 1, [[0, 0]], 1)[0]), name);
      });
    }
  });

  test(`${host.variant}: an expert id out of range traps`, () => {
    scoped(host, () => {
      const routing = host.alloc(16);
      host.ints(routing, 2).set([0, 4]);
      const plan = host.alloc(host.exports.plan_bytes(1, 2, 4));
      assert.throws(() => host.exports.route_plan(0, 1, host.scratch, plan, routing, 1, 2, 4), /unreachable/);
    });
  });
}

test('all builds give the same bits', () => {
  assert.ok(hosts.length >= 2);
  for (const name of TYPES) {
    for (const count of [1, 11]) {
      const width = widths(name).at(-1)!;
      const [first, ...others] = hosts.map((host) => {
        let result: Float32Array = new Float32Array();
        scoped(host, () => {
          const matrix = placeMatrix(host, name, width, 40, 123);
          const placed = placeActivations(host, matrix.type, activations(width, count, 321), width, count);
          result = mulMat(host, matrix, placed, count, identity(count), count);
        });
        return { variant: host.variant, result };
      });
      for (const other of others) sameBits(other.result, first!.result, `${name}, ${count} rows, ${other.variant}`);
    }
  }
});

test('addresses above 2 GiB give the same bits', async () => {
  // Only the pages that are used take memory.
  const low = hosts.at(-1)!;
  const high = await loadKernels(low.variant, 33000, 2 ** 31 - 8192);
  for (const name of TYPES) {
    const width = widths(name).at(-1)!;
    const [expected, actual] = [low, high].map((host) => {
      let result: Float32Array = new Float32Array();
      scoped(host, () => {
        const matrix = placeMatrix(host, name, width, 40, 123);
        const placed = placeActivations(host, matrix.type, activations(width, 9, 321), width, 9);
        result = mulMat(host, matrix, placed, 9, identity(9), 9);
      });
      return result;
    });
    sameBits(actual!, expected!, name);
  }
});

/** Types that take more: their codes are resolved or unpacked at load, so that products need no tables. */
const GROWTH: Partial<Record<GgmlTypeName, number>> = {
  IQ1_S: 1.73,
  IQ1_M: 1.54,
  IQ2_XXS: 1.73,
  IQ2_XS: 1.55,
  IQ2_S: 1.4,
  IQ3_XXS: 1.43,
  IQ3_S: 1.28,
  TQ1_0: 1.23,
};

test('interleaving costs at most 6 % of any type but those that are resolved at load', () => {
  for (const name of TYPES) {
    const width = 768;
    const type = placeMatrix(hosts[0]!, name, width, 1, 1).type;
    const grown = hosts[0]!.exports.group_bytes(type.id, width) / (16 * rowBytes(type, width));
    assert.ok(grown >= 1 && grown <= (GROWTH[name] ?? 1.06), `${name}: ${grown}`);
  }
});

test.run();
