/** Tiles of f32 weights. */

import { TILE_RESULTS, token } from './tile';

/** f32 weights at `w`, [columns][16 rows]. */
export function tile_f32(scratch: usize, w: usize, count: i32, segment: usize, columns: i32): void {
  for (let t = 0; t < count; t += 4) {
    for (let half: usize = 0; half < 64; half += 32) {
      let x0 = token(scratch, t, count) + segment;
      let x1 = token(scratch, t + 1, count) + segment;
      let x2 = token(scratch, t + 2, count) + segment;
      let x3 = token(scratch, t + 3, count) + segment;
      const results = scratch + (t << 6) + half;
      let a0 = v128.load(results, TILE_RESULTS);
      let b0 = v128.load(results, TILE_RESULTS + 16);
      let a1 = v128.load(results, TILE_RESULTS + 64);
      let b1 = v128.load(results, TILE_RESULTS + 80);
      let a2 = v128.load(results, TILE_RESULTS + 128);
      let b2 = v128.load(results, TILE_RESULTS + 144);
      let a3 = v128.load(results, TILE_RESULTS + 192);
      let b3 = v128.load(results, TILE_RESULTS + 208);
      let row = w + half;
      for (let k = 0; k < columns; k++) {
        const wa = v128.load(row);
        const wb = v128.load(row, 16);
        let x = v128.load32_splat(x0);
        a0 = f32x4.add(a0, f32x4.mul(wa, x));
        b0 = f32x4.add(b0, f32x4.mul(wb, x));
        x = v128.load32_splat(x1);
        a1 = f32x4.add(a1, f32x4.mul(wa, x));
        b1 = f32x4.add(b1, f32x4.mul(wb, x));
        x = v128.load32_splat(x2);
        a2 = f32x4.add(a2, f32x4.mul(wa, x));
        b2 = f32x4.add(b2, f32x4.mul(wb, x));
        x = v128.load32_splat(x3);
        a3 = f32x4.add(a3, f32x4.mul(wa, x));
        b3 = f32x4.add(b3, f32x4.mul(wb, x));
        row += 64;
        x0 += 4;
        x1 += 4;
        x2 += 4;
        x3 += 4;
      }
      v128.store(results, a0, TILE_RESULTS);
      v128.store(results, b0, TILE_RESULTS + 16);
      v128.store(results, a1, TILE_RESULTS + 64);
      v128.store(results, b1, TILE_RESULTS + 80);
      v128.store(results, a2, TILE_RESULTS + 128);
      v128.store(results, b2, TILE_RESULTS + 144);
      v128.store(results, a3, TILE_RESULTS + 192);
      v128.store(results, b3, TILE_RESULTS + 208);
    }
  }
}
