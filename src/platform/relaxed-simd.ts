/** Whether relaxed SIMD can be trusted: it must be on, and it must compute what its specification says. */

/** -128 in all lanes of the first operand, 127 in those of the second: products whose pairs just fit into 16 bits. */
const EXPECTED = 4 * -128 * 127;

/**
 * A module with one function of no parameters: lane 0 of `i32x4.relaxed_dot_i8x16_i7x16_add_s` of -128, 127 and 0
 * (relaxed SIMD proposal: opcode 0xfd 0x113).
 */
const PROBE = /* @__PURE__ */ probeModule();

/** The baseline compilers of some V8 versions before 12 double these products, so that being valid is not enough. */
export function relaxedSimdWorks(): boolean {
  if (!WebAssembly.validate(PROBE)) return false;
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(PROBE));
    return (exports.dot as () => number)() === EXPECTED;
  } catch {
    // Hosts that forbid to compile at run time are told which kernels to use.
    return false;
  }
}

function probeModule(): Uint8Array<ArrayBuffer> {
  const constant = (byte: number): number[] => [0xfd, 0x0c, ...Array<number>(16).fill(byte)];
  const body = [
    0x00, // no locals
    ...constant(0x80),
    ...constant(0x7f),
    ...constant(0x00),
    ...[0xfd, 0x93, 0x02], // i32x4.relaxed_dot_i8x16_i7x16_add_s
    ...[0xfd, 0x1b, 0x00], // i32x4.extract_lane 0
    0x0b,
  ];
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...[0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7f], // type: () → i32
    ...[0x03, 0x02, 0x01, 0x00],
    ...[0x07, 0x07, 0x01, 0x03, 0x64, 0x6f, 0x74, 0x00, 0x00], // export "dot"
    ...[0x0a, body.length + 2, 0x01, body.length, ...body],
  ]);
}
