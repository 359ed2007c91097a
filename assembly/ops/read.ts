/** Reads memory and does nothing with it: how fast the machine can. */

/** An item is a stretch of `itemBytes`, a multiple of 64, from `source` on. The sum of everything goes to scratch. */
export function read_bytes(start: i32, end: i32, scratch: usize, source: usize, itemBytes: i32): void {
  let a = i64x2.splat(0);
  let b = i64x2.splat(0);
  let c = i64x2.splat(0);
  let d = i64x2.splat(0);
  const last = source + <usize>end * <usize>itemBytes;
  for (let at = source + <usize>start * <usize>itemBytes; at < last; at += 64) {
    a = i64x2.add(a, v128.load(at));
    b = i64x2.add(b, v128.load(at, 16));
    c = i64x2.add(c, v128.load(at, 32));
    d = i64x2.add(d, v128.load(at, 48));
  }
  v128.store(scratch, i64x2.add(i64x2.add(a, b), i64x2.add(c, d)));
}
