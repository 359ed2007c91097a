import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError, type AprErrorCode } from '../../src/errors.ts';
import { npyHeader, npyHeaderEnd, npyValues, parseNpyHeader } from '../../src/trace/npy.ts';

const text = (bytes: Uint8Array): string => new TextDecoder('latin1').decode(bytes);

/** A file of another program: any header, then `size` bytes. */
function file(literal: string, size: number, version = 1): Uint8Array {
  const prefix =
    version === 1 ? [literal.length & 255, literal.length >> 8] : [literal.length & 255, literal.length >> 8, 0, 0];
  return Uint8Array.from([
    0x93,
    ...Buffer.from('NUMPY'),
    version,
    0,
    ...prefix,
    ...Buffer.from(literal),
    ...new Uint8Array(size),
  ]);
}

function parse(bytes: Uint8Array) {
  return parseNpyHeader('x.npy', bytes.subarray(0, npyHeaderEnd('x.npy', bytes)), bytes.length);
}

function refused(bytes: Uint8Array, code: AprErrorCode, message: RegExp): void {
  try {
    parse(bytes);
  } catch (error) {
    assert.instance(error, AprError);
    assert.is((error as AprError).code, code);
    assert.match((error as AprError).message, message);
    return;
  }
  assert.unreachable('it was taken');
}

test('a header as the format asks for: magic, version 1.0, length, literal, padded to 64 bytes, newline', () => {
  const header = npyHeader('<f4', [3, 256]);
  assert.is(text(header.subarray(0, 6)), '\x93NUMPY');
  assert.equal([...header.subarray(6, 8)], [1, 0]);
  assert.is(header.length % 64, 0);
  assert.is((header[8] as number) + 256 * (header[9] as number), header.length - 10);
  assert.match(text(header.subarray(10)), /^\{'descr': '<f4', 'fortran_order': False, 'shape': \(3, 256\), \} *\n$/);
  assert.match(text(npyHeader('<i4', [7])), /'shape': \(7,\), \}/);
});

test('what is written is read again', () => {
  const header = npyHeader('<f4', [2, 1, 3]);
  const bytes = Uint8Array.from([...header, ...new Uint8Array(24)]);
  assert.equal(parse(bytes), { type: '<f4', shape: [2, 1, 3], offset: header.length });
});

test('headers of other programs: other order of keys, no padding, versions 2 and 3', () => {
  const literal = '{"shape": (2, 2), "fortran_order": False, "descr": "<f8"}\n';
  for (const version of [1, 2, 3]) {
    const { type, shape } = parse(file(literal, 32, version));
    assert.equal([type, shape], ['<f8', [2, 2]]);
  }
  // One-dimensional arrays are in both orders at once.
  assert.equal(parse(file("{'descr': '<f4', 'fortran_order': True, 'shape': (4,), }", 16)).shape, [4]);
});

test('values of each type', () => {
  const floats = Float32Array.of(1.5, -2);
  assert.equal([...npyValues('<f4', new Uint8Array(floats.buffer))], [1.5, -2]);
  assert.equal([...npyValues('<f8', new Uint8Array(Float64Array.of(0.25, 3).buffer))], [0.25, 3]);
  const halves = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7c00, 0xfe00);
  assert.equal(
    [...npyValues('<f2', new Uint8Array(halves.buffer))],
    [1, -2, 2 ** -24, Number.POSITIVE_INFINITY, Number.NaN],
  );
  const ids = npyValues('<i4', new Uint8Array(Int32Array.of(7, -1).buffer));
  assert.equal([...new Int32Array(ids.buffer)], [7, -1]);
  const wide = npyValues('<i8', new Uint8Array(BigInt64Array.of(7n, -2n, 2n ** 32n + 7n).buffer));
  assert.equal([...new Int32Array(wide.buffer)], [7, -2, -1]);
});

test('what cannot be taken is refused by what it is', () => {
  const header = (descr: string, order = 'False', shape = '2, 2') =>
    `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': (${shape}), }`;
  refused(Buffer.from('PK\x03\x04 an archive'), 'BAD_FORMAT', /does not begin as a \.npy file/);
  refused(new Uint8Array(), 'BAD_FORMAT', /does not begin/);
  refused(file(header('<f4'), 16, 9), 'BAD_FORMAT', /version 9/);
  refused(file('{}', 16), 'BAD_FORMAT', /no header with descr/);
  refused(file(header('>f4'), 16), 'UNSUPPORTED', /">f4", expected one of <f4/);
  refused(file(header('|O'), 16), 'UNSUPPORTED', /"\|O"/);
  refused(file(header('<f4', 'True'), 16), 'UNSUPPORTED', /Fortran order/);
  refused(file(header('<f4'), 15), 'BAD_FORMAT', /expected \d+ for values <f4 of shape \(2, 2\)/);
  refused(file(header('<f4', 'False', '99999999999, 99999999999'), 16), 'BAD_FORMAT', /expected/);
  const long = file(header('<f4'), 16, 2);
  long.set([255, 255, 255, 127], 8);
  refused(long, 'BAD_FORMAT', /header of 2147483647 bytes/);
});

test.run();
