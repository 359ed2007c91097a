/** Rotary position embedding by a table of cosines and sines. */

const INTERLEAVED: i32 = 0;

/**
 * Turns the first `dims` values of each head of `headDim`; the rest is copied. Pairs are (2i, 2i + 1) with `pairing` 0,
 * (i, i + dims / 2) with 1. `table`: for each row dims / 2 times (cos, sin), f32. Item: a row of `width` floats.
 * dst may be x.
 */
export function rope(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  x: usize,
  width: i32,
  headDim: i32,
  dims: i32,
  pairing: i32,
  table: usize,
): void {
  const rowBytes = (<usize>width) << 2;
  const headBytes = (<usize>headDim) << 2;
  const turned = (<usize>dims) << 2;
  for (let row = start; row < end; row++) {
    const angles = table + <usize>row * turned;
    for (let head: usize = 0; head < rowBytes; head += headBytes) {
      const from = x + <usize>row * rowBytes + head;
      const to = dst + <usize>row * rowBytes + head;
      if (pairing == INTERLEAVED) turn_neighbours(to, from, angles, dims);
      else turn_halves(to, from, angles, dims >> 1);
      if (to != from) memory.copy(to + turned, from + turned, headBytes - turned);
    }
  }
}

function turn_neighbours(dst: usize, x: usize, angles: usize, dims: i32): void {
  const signs = i32x4(<i32>0x80000000, 0, <i32>0x80000000, 0);
  let i = 0;
  for (; i + 4 <= dims; i += 4) {
    const value = v128.load(x + (i << 2));
    const angle = v128.load(angles + (i << 2));
    const cosines = v128.shuffle<i32>(angle, angle, 0, 0, 2, 2);
    const sines = v128.xor(v128.shuffle<i32>(angle, angle, 1, 1, 3, 3), signs);
    const crossed = v128.shuffle<i32>(value, value, 1, 0, 3, 2);
    v128.store(dst + (i << 2), f32x4.add(f32x4.mul(value, cosines), f32x4.mul(crossed, sines)));
  }
  for (; i < dims; i += 2) turn(dst + (i << 2), x + (i << 2), 4, angles + (i << 2));
}

function turn_halves(dst: usize, x: usize, angles: usize, pairs: i32): void {
  const distance = (<usize>pairs) << 2;
  let i = 0;
  for (; i + 4 <= pairs; i += 4) {
    const first = v128.load(angles + (i << 3));
    const second = v128.load(angles + (i << 3), 16);
    const cosines = v128.shuffle<i32>(first, second, 0, 2, 4, 6);
    const sines = v128.shuffle<i32>(first, second, 1, 3, 5, 7);
    const a = v128.load(x + (i << 2));
    const b = v128.load(x + (i << 2) + distance);
    v128.store(dst + (i << 2), f32x4.sub(f32x4.mul(a, cosines), f32x4.mul(b, sines)));
    v128.store(dst + (i << 2) + distance, f32x4.add(f32x4.mul(a, sines), f32x4.mul(b, cosines)));
  }
  for (; i < pairs; i++) turn(dst + (i << 2), x + (i << 2), distance, angles + (i << 3));
}

/** One pair, `distance` bytes apart. */
function turn(dst: usize, x: usize, distance: usize, angle: usize): void {
  const cosine = load<f32>(angle);
  const sine = load<f32>(angle, 4);
  const a = load<f32>(x);
  const b = load<f32>(x + distance);
  store<f32>(dst, a * cosine - b * sine);
  store<f32>(dst + distance, a * sine + b * cosine);
}
