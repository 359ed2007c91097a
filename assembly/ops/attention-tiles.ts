/**
 * Inner loops of attention. Several queries go through the same keys and values at once; what each of them sums, and in
 * which order, does not depend on how many there are:
 *
 *   score  s ← s + q[d] · k[d], d ascending, from 0 on; then times the scale
 *   value  a ← a + p · v, positions ascending
 */

/** Scores of four queries against one octet of keys, [headDim][8]. */
export function scores4(
  s0: usize,
  s1: usize,
  s2: usize,
  s3: usize,
  q0: usize,
  q1: usize,
  q2: usize,
  q3: usize,
  k: usize,
  headDim: i32,
  scale: v128,
): void {
  let a0 = f32x4.splat(0);
  let b0 = a0;
  let a1 = a0;
  let b1 = a0;
  let a2 = a0;
  let b2 = a0;
  let a3 = a0;
  let b3 = a0;
  const ends = q0 + ((<usize>headDim) << 2);
  while (q0 < ends) {
    const ka = v128.load(k);
    const kb = v128.load(k, 16);
    let q = v128.load32_splat(q0);
    a0 = f32x4.add(a0, f32x4.mul(ka, q));
    b0 = f32x4.add(b0, f32x4.mul(kb, q));
    q = v128.load32_splat(q1);
    a1 = f32x4.add(a1, f32x4.mul(ka, q));
    b1 = f32x4.add(b1, f32x4.mul(kb, q));
    q = v128.load32_splat(q2);
    a2 = f32x4.add(a2, f32x4.mul(ka, q));
    b2 = f32x4.add(b2, f32x4.mul(kb, q));
    q = v128.load32_splat(q3);
    a3 = f32x4.add(a3, f32x4.mul(ka, q));
    b3 = f32x4.add(b3, f32x4.mul(kb, q));
    k += 32;
    q0 += 4;
    q1 += 4;
    q2 += 4;
    q3 += 4;
  }
  store_pair(s0, a0, b0, scale);
  store_pair(s1, a1, b1, scale);
  store_pair(s2, a2, b2, scale);
  store_pair(s3, a3, b3, scale);
}

/** Scores of two queries against one octet. */
export function scores2(s0: usize, s1: usize, q0: usize, q1: usize, k: usize, headDim: i32, scale: v128): void {
  let a0 = f32x4.splat(0);
  let b0 = a0;
  let a1 = a0;
  let b1 = a0;
  const ends = q0 + ((<usize>headDim) << 2);
  while (q0 < ends) {
    const ka = v128.load(k);
    const kb = v128.load(k, 16);
    let q = v128.load32_splat(q0);
    a0 = f32x4.add(a0, f32x4.mul(ka, q));
    b0 = f32x4.add(b0, f32x4.mul(kb, q));
    q = v128.load32_splat(q1);
    a1 = f32x4.add(a1, f32x4.mul(ka, q));
    b1 = f32x4.add(b1, f32x4.mul(kb, q));
    k += 32;
    q0 += 4;
    q1 += 4;
  }
  store_pair(s0, a0, b0, scale);
  store_pair(s1, a1, b1, scale);
}

/** Scores of one query against two octets, the second one `stride` bytes behind the first. */
export function scores1(s: usize, q: usize, k: usize, stride: usize, headDim: i32, scale: v128): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  const ends = q + ((<usize>headDim) << 2);
  let k2 = k + stride;
  while (q < ends) {
    const value = v128.load32_splat(q);
    a = f32x4.add(a, f32x4.mul(v128.load(k), value));
    b = f32x4.add(b, f32x4.mul(v128.load(k, 16), value));
    c = f32x4.add(c, f32x4.mul(v128.load(k2), value));
    d = f32x4.add(d, f32x4.mul(v128.load(k2, 16), value));
    k += 32;
    k2 += 32;
    q += 4;
  }
  store_pair(s, a, b, scale);
  store_pair(s + 32, c, d, scale);
}

function store_pair(s: usize, a: v128, b: v128, scale: v128): void {
  v128.store(s, f32x4.mul(a, scale));
  v128.store(s, f32x4.mul(b, scale), 16);
}

/** Adds the values of positions from … to − 1 to four sums; `p…` are the queries' weights by position. */
export function values4(
  acc0: usize,
  acc1: usize,
  acc2: usize,
  acc3: usize,
  p0: usize,
  p1: usize,
  p2: usize,
  p3: usize,
  v: usize,
  from: i32,
  to: i32,
  width: i32,
): void {
  const rowBytes = (<usize>width) << 2;
  const first = (<usize>from) << 2;
  const ends = p0 + ((<usize>to) << 2);
  for (let column: usize = 0; column < rowBytes; column += 32) {
    let a0 = v128.load(acc0 + column);
    let b0 = v128.load(acc0 + column, 16);
    let a1 = v128.load(acc1 + column);
    let b1 = v128.load(acc1 + column, 16);
    let a2 = v128.load(acc2 + column);
    let b2 = v128.load(acc2 + column, 16);
    let a3 = v128.load(acc3 + column);
    let b3 = v128.load(acc3 + column, 16);
    let row = v + <usize>from * rowBytes + column;
    let w0 = p0 + first;
    let w1 = p1 + first;
    let w2 = p2 + first;
    let w3 = p3 + first;
    while (w0 < ends) {
      const va = v128.load(row);
      const vb = v128.load(row, 16);
      let p = v128.load32_splat(w0);
      a0 = f32x4.add(a0, f32x4.mul(va, p));
      b0 = f32x4.add(b0, f32x4.mul(vb, p));
      p = v128.load32_splat(w1);
      a1 = f32x4.add(a1, f32x4.mul(va, p));
      b1 = f32x4.add(b1, f32x4.mul(vb, p));
      p = v128.load32_splat(w2);
      a2 = f32x4.add(a2, f32x4.mul(va, p));
      b2 = f32x4.add(b2, f32x4.mul(vb, p));
      p = v128.load32_splat(w3);
      a3 = f32x4.add(a3, f32x4.mul(va, p));
      b3 = f32x4.add(b3, f32x4.mul(vb, p));
      row += rowBytes;
      w0 += 4;
      w1 += 4;
      w2 += 4;
      w3 += 4;
    }
    v128.store(acc0 + column, a0);
    v128.store(acc0 + column, b0, 16);
    v128.store(acc1 + column, a1);
    v128.store(acc1 + column, b1, 16);
    v128.store(acc2 + column, a2);
    v128.store(acc2 + column, b2, 16);
    v128.store(acc3 + column, a3);
    v128.store(acc3 + column, b3, 16);
  }
}

export function values2(
  acc0: usize,
  acc1: usize,
  p0: usize,
  p1: usize,
  v: usize,
  from: i32,
  to: i32,
  width: i32,
): void {
  const rowBytes = (<usize>width) << 2;
  const first = (<usize>from) << 2;
  const ends = p0 + ((<usize>to) << 2);
  for (let column: usize = 0; column < rowBytes; column += 32) {
    let a0 = v128.load(acc0 + column);
    let b0 = v128.load(acc0 + column, 16);
    let a1 = v128.load(acc1 + column);
    let b1 = v128.load(acc1 + column, 16);
    let row = v + <usize>from * rowBytes + column;
    let w0 = p0 + first;
    let w1 = p1 + first;
    while (w0 < ends) {
      const va = v128.load(row);
      const vb = v128.load(row, 16);
      let p = v128.load32_splat(w0);
      a0 = f32x4.add(a0, f32x4.mul(va, p));
      b0 = f32x4.add(b0, f32x4.mul(vb, p));
      p = v128.load32_splat(w1);
      a1 = f32x4.add(a1, f32x4.mul(va, p));
      b1 = f32x4.add(b1, f32x4.mul(vb, p));
      row += rowBytes;
      w0 += 4;
      w1 += 4;
    }
    v128.store(acc0 + column, a0);
    v128.store(acc0 + column, b0, 16);
    v128.store(acc1 + column, a1);
    v128.store(acc1 + column, b1, 16);
  }
}

export function values1(acc: usize, weights: usize, v: usize, from: i32, to: i32, width: i32): void {
  const rowBytes = (<usize>width) << 2;
  const ends = weights + ((<usize>to) << 2);
  let column: usize = 0;
  // 16 columns at a time keep the adders busy; a last 8 stand alone.
  for (; column + 64 <= rowBytes; column += 64) {
    let a = v128.load(acc + column);
    let b = v128.load(acc + column, 16);
    let c = v128.load(acc + column, 32);
    let d = v128.load(acc + column, 48);
    let row = v + <usize>from * rowBytes + column;
    for (let w = weights + ((<usize>from) << 2); w < ends; w += 4) {
      const p = v128.load32_splat(w);
      a = f32x4.add(a, f32x4.mul(v128.load(row), p));
      b = f32x4.add(b, f32x4.mul(v128.load(row, 16), p));
      c = f32x4.add(c, f32x4.mul(v128.load(row, 32), p));
      d = f32x4.add(d, f32x4.mul(v128.load(row, 48), p));
      row += rowBytes;
    }
    v128.store(acc + column, a);
    v128.store(acc + column, b, 16);
    v128.store(acc + column, c, 32);
    v128.store(acc + column, d, 48);
  }
  for (; column < rowBytes; column += 32) {
    let a = v128.load(acc + column);
    let b = v128.load(acc + column, 16);
    let row = v + <usize>from * rowBytes + column;
    for (let w = weights + ((<usize>from) << 2); w < ends; w += 4) {
      const p = v128.load32_splat(w);
      a = f32x4.add(a, f32x4.mul(v128.load(row), p));
      b = f32x4.add(b, f32x4.mul(v128.load(row, 16), p));
      row += rowBytes;
    }
    v128.store(acc + column, a);
    v128.store(acc + column, b, 16);
  }
}
