/** Root mean square normalisation, in the order of ggml's operations: RMS_NORM, then MUL. */

/**
 * dst = (x · s) · weight with s = 1 / √(mean(x²) + eps), over each run of `width` floats; the squares are f32, their
 * sum f64. Item: a run: a row, or one head of a row for the norm of queries and keys. dst may be x.
 */
export function rms_norm(
  start: i32,
  end: i32,
  scratch: usize,
  dst: usize,
  x: usize,
  weight: usize,
  width: i32,
  epsBits: i32,
): void {
  const bytes = (<usize>width) << 2;
  const eps = reinterpret<f32>(epsBits);
  for (let run = start; run < end; run++) {
    const from = x + <usize>run * bytes;
    const scale = <f32>1 / sqrt<f32>(<f32>(squares(from, width) / <f64>width) + eps);
    scale_run(dst + <usize>run * bytes, from, weight, width, scale);
  }
}

function squares(x: usize, width: i32): f64 {
  let a = f64x2.splat(0);
  let b = f64x2.splat(0);
  let i = 0;
  for (; i + 4 <= width; i += 4) {
    const value = v128.load(x + (i << 2));
    const square = f32x4.mul(value, value);
    a = f64x2.add(a, f64x2.promote_low_f32x4(square));
    b = f64x2.add(b, f64x2.promote_low_f32x4(v128.shuffle<i32>(square, square, 2, 3, 2, 3)));
  }
  const both = f64x2.add(a, b);
  let sum = f64x2.extract_lane(both, 0) + f64x2.extract_lane(both, 1);
  for (; i < width; i++) {
    const value = load<f32>(x + (i << 2));
    sum += <f64>(value * value);
  }
  return sum;
}

function scale_run(dst: usize, x: usize, weight: usize, width: i32, scale: f32): void {
  const factor = f32x4.splat(scale);
  let i = 0;
  for (; i + 4 <= width; i += 4) {
    const value = f32x4.mul(v128.load(x + (i << 2)), factor);
    v128.store(dst + (i << 2), f32x4.mul(value, v128.load(weight + (i << 2))));
  }
  for (; i < width; i++) store<f32>(dst + (i << 2), load<f32>(x + (i << 2)) * scale * load<f32>(weight + (i << 2)));
}
