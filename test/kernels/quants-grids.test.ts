/** The grids of the IQ1, IQ2 and IQ3 types are ggml's, byte for byte. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { gridEntries, gridOf, MAX_GRID_BYTES } from '../../src/backends/grids.ts';
import { crc32 } from '../../src/formats/crc32.ts';
import { ggmlType } from '../../src/formats/ggml-types.ts';

/** Entries, values of an entry, and the CRC-32 of the table's bytes as they stand in llama.cpp's libggml. */
const TABLES = {
  IQ2_XXS: [256, 8, 0x9924ff02],
  IQ2_XS: [512, 8, 0xfa1e1bfd],
  IQ2_S: [1024, 8, 0x25ae5bf1],
  IQ3_XXS: [256, 4, 0x07ba9ed0],
  IQ3_S: [512, 4, 0xf576e4f3],
  IQ1_S: [2048, 8, 0xb85e6ccf],
  IQ1_M: [2048, 8, 0xb85e6ccf],
} as const;

for (const [name, [entries, values, checksum]] of Object.entries(TABLES)) {
  test(`${name}: ggml's grid`, () => {
    const grid = gridOf(name as keyof typeof TABLES);
    assert.is(grid.entries.length, entries);
    const bytes = new Int8Array(entries * values);
    grid.entries.forEach((entry, i) => {
      for (let k = 0; k < values; k++) {
        const index = (entry >> (k * grid.bits)) & ((1 << grid.bits) - 1);
        assert.ok(index < grid.values.length, `entry ${i}, value ${k}`);
        bytes[i * values + k] = grid.values[index]!;
      }
    });
    assert.is(crc32(new Uint8Array(bytes.buffer)) >>> 0, checksum);
    assert.is(new Set(grid.entries).size, entries, 'no entry twice');
    assert.is(gridEntries(ggmlType(name as keyof typeof TABLES).id), grid.entries);
    assert.ok(grid.entries.byteLength <= MAX_GRID_BYTES);
  });
}

test('types without a grid have none', () => {
  assert.is(gridEntries(ggmlType('Q4_K').id), undefined);
  assert.throws(() => gridOf('Q4_K'), /Q4_K has no grid/);
});

test.run();
