/**
 * Inner loops of attention. Several queries go through the same keys and values at once; what each of them sums, and in
 * which order, does not depend on how many there are:
 *
 *   score  s ← s + q[d] · k[d], d ascending, from 0 on; then times the scale
 *   value  a ← a + p[i] · v[i], positions ascending
 *
 * All factors are values of binary16, so that their products are exact in f32: fused or not, the sums have the same
 * bits, and the relaxed builds may fuse.
 */

/** a + x · y with an exact product. */
function add_product(a: v128, x: v128, y: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(x, y, a);
  return f32x4.add(a, f32x4.mul(x, y));
}

/** Queries of the next tile when so many are left: 6, 4, 2 or 1. Six need the registers that only fusing leaves. */
export function tile_of(left: i32): i32 {
  if (ASC_FEATURE_RELAXED_SIMD) if (left >= 6) return 6;
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

function store_pair(s: usize, a: v128, b: v128, scale: v128): void {
  v128.store(s, f32x4.mul(a, scale));
  v128.store(s, f32x4.mul(b, scale), 16);
}

/*
 * Scores: `q` holds the queries of the tile side by side, f32 [headDim][queries]; `k` an octet of keys, f32
 * [headDim][8]; the scores of query j go to s + j · stride.
 */

/** Six queries, one octet. */
export function scores6(s: usize, stride: usize, q: usize, k: usize, headDim: i32, scale: v128): void {
  let a0 = f32x4.splat(0);
  let b0 = a0;
  let a1 = a0;
  let b1 = a0;
  let a2 = a0;
  let b2 = a0;
  let a3 = a0;
  let b3 = a0;
  let a4 = a0;
  let b4 = a0;
  let a5 = a0;
  let b5 = a0;
  const ends = q + <usize>headDim * 24;
  while (q < ends) {
    const ka = v128.load(k);
    const kb = v128.load(k, 16);
    let value = v128.load32_splat(q);
    a0 = add_product(a0, ka, value);
    b0 = add_product(b0, kb, value);
    value = v128.load32_splat(q, 4);
    a1 = add_product(a1, ka, value);
    b1 = add_product(b1, kb, value);
    value = v128.load32_splat(q, 8);
    a2 = add_product(a2, ka, value);
    b2 = add_product(b2, kb, value);
    value = v128.load32_splat(q, 12);
    a3 = add_product(a3, ka, value);
    b3 = add_product(b3, kb, value);
    value = v128.load32_splat(q, 16);
    a4 = add_product(a4, ka, value);
    b4 = add_product(b4, kb, value);
    value = v128.load32_splat(q, 20);
    a5 = add_product(a5, ka, value);
    b5 = add_product(b5, kb, value);
    k += 32;
    q += 24;
  }
  store_pair(s, a0, b0, scale);
  store_pair(s + stride, a1, b1, scale);
  store_pair(s + 2 * stride, a2, b2, scale);
  store_pair(s + 3 * stride, a3, b3, scale);
  store_pair(s + 4 * stride, a4, b4, scale);
  store_pair(s + 5 * stride, a5, b5, scale);
}

/** Four queries, one octet. */
export function scores4(s: usize, stride: usize, q: usize, k: usize, headDim: i32, scale: v128): void {
  let a0 = f32x4.splat(0);
  let b0 = a0;
  let a1 = a0;
  let b1 = a0;
  let a2 = a0;
  let b2 = a0;
  let a3 = a0;
  let b3 = a0;
  const ends = q + ((<usize>headDim) << 4);
  while (q < ends) {
    const ka = v128.load(k);
    const kb = v128.load(k, 16);
    let value = v128.load32_splat(q);
    a0 = add_product(a0, ka, value);
    b0 = add_product(b0, kb, value);
    value = v128.load32_splat(q, 4);
    a1 = add_product(a1, ka, value);
    b1 = add_product(b1, kb, value);
    value = v128.load32_splat(q, 8);
    a2 = add_product(a2, ka, value);
    b2 = add_product(b2, kb, value);
    value = v128.load32_splat(q, 12);
    a3 = add_product(a3, ka, value);
    b3 = add_product(b3, kb, value);
    k += 32;
    q += 16;
  }
  store_pair(s, a0, b0, scale);
  store_pair(s + stride, a1, b1, scale);
  store_pair(s + 2 * stride, a2, b2, scale);
  store_pair(s + 3 * stride, a3, b3, scale);
}

/** Two queries, two octets, the second one `next` bytes behind the first. */
export function scores2(s: usize, stride: usize, q: usize, k: usize, next: usize, headDim: i32, scale: v128): void {
  let a0 = f32x4.splat(0);
  let b0 = a0;
  let c0 = a0;
  let d0 = a0;
  let a1 = a0;
  let b1 = a0;
  let c1 = a0;
  let d1 = a0;
  const ends = q + ((<usize>headDim) << 3);
  let k2 = k + next;
  while (q < ends) {
    const ka = v128.load(k);
    const kb = v128.load(k, 16);
    const kc = v128.load(k2);
    const kd = v128.load(k2, 16);
    let value = v128.load32_splat(q);
    a0 = add_product(a0, ka, value);
    b0 = add_product(b0, kb, value);
    c0 = add_product(c0, kc, value);
    d0 = add_product(d0, kd, value);
    value = v128.load32_splat(q, 4);
    a1 = add_product(a1, ka, value);
    b1 = add_product(b1, kb, value);
    c1 = add_product(c1, kc, value);
    d1 = add_product(d1, kd, value);
    k += 32;
    k2 += 32;
    q += 8;
  }
  store_pair(s, a0, b0, scale);
  store_pair(s + 32, c0, d0, scale);
  store_pair(s + stride, a1, b1, scale);
  store_pair(s + stride + 32, c1, d1, scale);
}

/** One query, two octets. */
export function scores1(s: usize, q: usize, k: usize, next: usize, headDim: i32, scale: v128): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  const ends = q + ((<usize>headDim) << 2);
  let k2 = k + next;
  while (q < ends) {
    const value = v128.load32_splat(q);
    a = add_product(a, v128.load(k), value);
    b = add_product(b, v128.load(k, 16), value);
    c = add_product(c, v128.load(k2), value);
    d = add_product(d, v128.load(k2, 16), value);
    k += 32;
    k2 += 32;
    q += 4;
  }
  store_pair(s, a, b, scale);
  store_pair(s + 32, c, d, scale);
}

/*
 * Values: `v` holds rows of `width` f32, one a position; the weights of query j start at p + j · WEIGHT_STRIDE, and its
 * sums, which the positions from … to − 1 are added to, at acc + j · stride.
 */

/** Bytes between the weights of two queries: those of a whole chunk. */
export const WEIGHT_STRIDE: usize = 512;

/** Six queries. */
export function values6(acc: usize, stride: usize, weights: usize, v: usize, from: i32, to: i32, width: i32): void {
  const rowBytes = (<usize>width) << 2;
  const ends = weights + ((<usize>to) << 2);
  for (let column: usize = 0; column < rowBytes; column += 32) {
    const at0 = acc + column;
    const at1 = at0 + stride;
    const at2 = at1 + stride;
    const at3 = at2 + stride;
    const at4 = at3 + stride;
    const at5 = at4 + stride;
    let a0 = v128.load(at0);
    let b0 = v128.load(at0, 16);
    let a1 = v128.load(at1);
    let b1 = v128.load(at1, 16);
    let a2 = v128.load(at2);
    let b2 = v128.load(at2, 16);
    let a3 = v128.load(at3);
    let b3 = v128.load(at3, 16);
    let a4 = v128.load(at4);
    let b4 = v128.load(at4, 16);
    let a5 = v128.load(at5);
    let b5 = v128.load(at5, 16);
    let row = v + <usize>from * rowBytes + column;
    for (let p = weights + ((<usize>from) << 2); p < ends; p += 4) {
      const va = v128.load(row);
      const vb = v128.load(row, 16);
      let weight = v128.load32_splat(p);
      a0 = add_product(a0, va, weight);
      b0 = add_product(b0, vb, weight);
      weight = v128.load32_splat(p, WEIGHT_STRIDE);
      a1 = add_product(a1, va, weight);
      b1 = add_product(b1, vb, weight);
      weight = v128.load32_splat(p, 2 * WEIGHT_STRIDE);
      a2 = add_product(a2, va, weight);
      b2 = add_product(b2, vb, weight);
      weight = v128.load32_splat(p, 3 * WEIGHT_STRIDE);
      a3 = add_product(a3, va, weight);
      b3 = add_product(b3, vb, weight);
      weight = v128.load32_splat(p, 4 * WEIGHT_STRIDE);
      a4 = add_product(a4, va, weight);
      b4 = add_product(b4, vb, weight);
      weight = v128.load32_splat(p, 5 * WEIGHT_STRIDE);
      a5 = add_product(a5, va, weight);
      b5 = add_product(b5, vb, weight);
      row += rowBytes;
    }
    v128.store(at0, a0);
    v128.store(at0, b0, 16);
    v128.store(at1, a1);
    v128.store(at1, b1, 16);
    v128.store(at2, a2);
    v128.store(at2, b2, 16);
    v128.store(at3, a3);
    v128.store(at3, b3, 16);
    v128.store(at4, a4);
    v128.store(at4, b4, 16);
    v128.store(at5, a5);
    v128.store(at5, b5, 16);
  }
}

/** Four queries. */
export function values4(acc: usize, stride: usize, weights: usize, v: usize, from: i32, to: i32, width: i32): void {
  const rowBytes = (<usize>width) << 2;
  const ends = weights + ((<usize>to) << 2);
  for (let column: usize = 0; column < rowBytes; column += 32) {
    const at0 = acc + column;
    const at1 = at0 + stride;
    const at2 = at1 + stride;
    const at3 = at2 + stride;
    let a0 = v128.load(at0);
    let b0 = v128.load(at0, 16);
    let a1 = v128.load(at1);
    let b1 = v128.load(at1, 16);
    let a2 = v128.load(at2);
    let b2 = v128.load(at2, 16);
    let a3 = v128.load(at3);
    let b3 = v128.load(at3, 16);
    let row = v + <usize>from * rowBytes + column;
    for (let p = weights + ((<usize>from) << 2); p < ends; p += 4) {
      const va = v128.load(row);
      const vb = v128.load(row, 16);
      let weight = v128.load32_splat(p);
      a0 = add_product(a0, va, weight);
      b0 = add_product(b0, vb, weight);
      weight = v128.load32_splat(p, WEIGHT_STRIDE);
      a1 = add_product(a1, va, weight);
      b1 = add_product(b1, vb, weight);
      weight = v128.load32_splat(p, 2 * WEIGHT_STRIDE);
      a2 = add_product(a2, va, weight);
      b2 = add_product(b2, vb, weight);
      weight = v128.load32_splat(p, 3 * WEIGHT_STRIDE);
      a3 = add_product(a3, va, weight);
      b3 = add_product(b3, vb, weight);
      row += rowBytes;
    }
    v128.store(at0, a0);
    v128.store(at0, b0, 16);
    v128.store(at1, a1);
    v128.store(at1, b1, 16);
    v128.store(at2, a2);
    v128.store(at2, b2, 16);
    v128.store(at3, a3);
    v128.store(at3, b3, 16);
  }
}

/** Two queries. */
export function values2(acc: usize, stride: usize, weights: usize, v: usize, from: i32, to: i32, width: i32): void {
  const rowBytes = (<usize>width) << 2;
  const ends = weights + ((<usize>to) << 2);
  let column: usize = 0;
  // 16 columns at a time keep the adders busy; a last 8 are left to single queries.
  for (; column + 64 <= rowBytes; column += 64) {
    const at0 = acc + column;
    const at1 = at0 + stride;
    let a0 = v128.load(at0);
    let b0 = v128.load(at0, 16);
    let c0 = v128.load(at0, 32);
    let d0 = v128.load(at0, 48);
    let a1 = v128.load(at1);
    let b1 = v128.load(at1, 16);
    let c1 = v128.load(at1, 32);
    let d1 = v128.load(at1, 48);
    let row = v + <usize>from * rowBytes + column;
    for (let p = weights + ((<usize>from) << 2); p < ends; p += 4) {
      const va = v128.load(row);
      const vb = v128.load(row, 16);
      const vc = v128.load(row, 32);
      const vd = v128.load(row, 48);
      let weight = v128.load32_splat(p);
      a0 = add_product(a0, va, weight);
      b0 = add_product(b0, vb, weight);
      c0 = add_product(c0, vc, weight);
      d0 = add_product(d0, vd, weight);
      weight = v128.load32_splat(p, WEIGHT_STRIDE);
      a1 = add_product(a1, va, weight);
      b1 = add_product(b1, vb, weight);
      c1 = add_product(c1, vc, weight);
      d1 = add_product(d1, vd, weight);
      row += rowBytes;
    }
    v128.store(at0, a0);
    v128.store(at0, b0, 16);
    v128.store(at0, c0, 32);
    v128.store(at0, d0, 48);
    v128.store(at1, a1);
    v128.store(at1, b1, 16);
    v128.store(at1, c1, 32);
    v128.store(at1, d1, 48);
  }
  if (column < rowBytes) {
    values_octet(acc + column, weights, v + column, from, to, rowBytes);
    values_octet(acc + column + stride, weights + WEIGHT_STRIDE, v + column, from, to, rowBytes);
  }
}

/** One query. */
export function values1(acc: usize, weights: usize, v: usize, from: i32, to: i32, width: i32): void {
  const rowBytes = (<usize>width) << 2;
  const ends = weights + ((<usize>to) << 2);
  let column: usize = 0;
  for (; column + 64 <= rowBytes; column += 64) {
    let a = v128.load(acc + column);
    let b = v128.load(acc + column, 16);
    let c = v128.load(acc + column, 32);
    let d = v128.load(acc + column, 48);
    let row = v + <usize>from * rowBytes + column;
    for (let p = weights + ((<usize>from) << 2); p < ends; p += 4) {
      const weight = v128.load32_splat(p);
      a = add_product(a, v128.load(row), weight);
      b = add_product(b, v128.load(row, 16), weight);
      c = add_product(c, v128.load(row, 32), weight);
      d = add_product(d, v128.load(row, 48), weight);
      row += rowBytes;
    }
    v128.store(acc + column, a);
    v128.store(acc + column, b, 16);
    v128.store(acc + column, c, 32);
    v128.store(acc + column, d, 48);
  }
  if (column < rowBytes) values_octet(acc + column, weights, v + column, from, to, rowBytes);
}

/** One query, eight columns. */
function values_octet(acc: usize, weights: usize, v: usize, from: i32, to: i32, rowBytes: usize): void {
  const ends = weights + ((<usize>to) << 2);
  let a = v128.load(acc);
  let b = v128.load(acc, 16);
  let row = v + <usize>from * rowBytes;
  for (let p = weights + ((<usize>from) << 2); p < ends; p += 4) {
    const weight = v128.load32_splat(p);
    a = add_product(a, v128.load(row), weight);
    b = add_product(b, v128.load(row, 16), weight);
    row += rowBytes;
  }
  v128.store(acc, a);
  v128.store(acc, b, 16);
}
