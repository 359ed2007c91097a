import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError } from '../../src/errors.ts';
import { createTokenizer, StreamingDecoder } from '../../src/tokenizer/index.ts';
import { bpeEntries, DEMO, loadTokenizer, metadataOf } from './fixtures.ts';

/** Tokens are whatever bytes the test says. */
function decoderOf(pieces: readonly Uint8Array[], stop: readonly string[] = []): StreamingDecoder {
  return new StreamingDecoder({ tokenBytes: (id) => pieces[id]! }, { stop });
}

/** Numbers from 0 up to `limit`, the same in every run. */
function generator(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

function cut(bytes: Uint8Array, random: (limit: number) => number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = random(5);
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

function run(pieces: readonly Uint8Array[], stop: readonly string[] = []): { parts: string[]; stopped: boolean } {
  const decoder = decoderOf(pieces, stop);
  const parts: string[] = [];
  let stopped = false;
  for (let id = 0; id < pieces.length && !stopped; id++) {
    const piece = decoder.push(id);
    parts.push(piece.text);
    stopped = piece.stopped;
  }
  parts.push(decoder.finish());
  return { parts, stopped };
}

const decode = (bytes: Uint8Array): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

test('however bytes are split, the pieces join to the text', () => {
  const random = generator(1);
  const characters = ['a', 'é', '日', '🎉', '\ufeff', '\u0000', '\n'];
  for (let round = 0; round < 2000; round++) {
    const text = Array.from({ length: random(12) }, () => characters[random(characters.length)]).join('');
    const bytes = new TextEncoder().encode(text);
    const { parts } = run(cut(bytes, random));
    assert.is(parts.join(''), text);
    // No piece holds half a character.
    assert.not.ok(parts.some((part) => part.includes('\ufffd')));
  }
});

test('invalid bytes join to what the whole would be', () => {
  const random = generator(2);
  for (let round = 0; round < 3000; round++) {
    const bytes = Uint8Array.from(
      { length: random(10) },
      () => [0x61, 0x80, 0xbf, 0xc3, 0xe2, 0x96, 0xf0, 0x9f, 0xff, 0xed, 0xa0][random(11)]!,
    );
    assert.is(run(cut(bytes, random)).parts.join(''), decode(bytes), [...bytes].join());
  }
});

test('an unfinished character at the end is one U+FFFD', () => {
  const party = new TextEncoder().encode('🎉');
  for (const size of [1, 2, 3]) {
    const { parts } = run([
      new TextEncoder().encode('a'),
      ...[...party.subarray(0, size)].map((byte) => Uint8Array.of(byte)),
    ]);
    assert.equal(parts, ['a', ...new Array<string>(size).fill(''), '\ufffd']);
  }
});

test('a character comes with its last byte', () => {
  const pieces = [...new TextEncoder().encode('é日')].map((byte) => Uint8Array.of(byte));
  assert.equal(run(pieces).parts, ['', 'é', '', '', '日', '']);
  const decoder = decoderOf(pieces);
  decoder.push(0);
  assert.ok(decoder.pending);
  decoder.push(1);
  assert.not.ok(decoder.pending);
});

test('stop strings: the text ends before the first complete one, and no part of it leaks', () => {
  const random = generator(3);
  for (let round = 0; round < 5000; round++) {
    const letters = () => Array.from({ length: 1 + random(4) }, () => 'ab日'[random(3)]).join('');
    const stop = Array.from({ length: 1 + random(3) }, letters);
    const text = Array.from({ length: random(5) }, letters).join('');
    const { parts, stopped } = run(cut(new TextEncoder().encode(text), random), stop);
    // The stop string that ends first; of those the longest.
    const found = stop
      .filter((each) => text.includes(each))
      .map((each) => ({ start: text.indexOf(each), end: text.indexOf(each) + each.length }))
      .sort((a, b) => a.end - b.end || a.start - b.start)[0];
    const expected = found === undefined ? text : text.slice(0, found.start);
    assert.is(parts.join(''), expected, JSON.stringify({ text, stop, parts }));
    assert.is(stopped, found !== undefined);
  }
});

test('text that cannot begin a stop string does not wait', () => {
  const pieces = ['one ', 'STO', 'RE', ' STOP', 'more'].map((text) => new TextEncoder().encode(text));
  assert.equal(run(pieces, ['STOP', 'never']), { parts: ['one ', '', 'STORE', ' ', ''], stopped: true });
});

test('a beginning of a stop string that stays one is text at the end', () => {
  const pieces = ['a', '##'].map((text) => new TextEncoder().encode(text));
  assert.equal(run(pieces, ['###']), { parts: ['a', '', '##'], stopped: false });
});

test('nothing comes after a stop', () => {
  const decoder = decoderOf([new TextEncoder().encode('a.b')], ['.']);
  assert.equal(decoder.push(0), { text: 'a', stopped: true });
  assert.equal(decoder.push(0), { text: '', stopped: true });
  assert.not.ok(decoder.pending);
  assert.is(decoder.finish(), '');
});

test('control tokens are not rendered, unless asked for', () => {
  const tokenizer = createTokenizer(metadataOf(bpeEntries([], { '<c>': 3, '<u>': 4 })));
  const text = (special: boolean): string => {
    const decoder = new StreamingDecoder(tokenizer, { special });
    return [97, 256, 257].map((id) => decoder.push(id).text).join('') + decoder.finish();
  };
  assert.is(text(false), 'a<u>');
  assert.is(text(true), 'a<c><u>');
});

test('the demo model, token by token', async () => {
  const tokenizer = await loadTokenizer(DEMO);
  const decoder = new StreamingDecoder(tokenizer);
  const text = 'こんにちは 🎉 café';
  const parts = tokenizer.encode(text).map((id) => decoder.push(id).text);
  assert.is(parts.join('') + decoder.finish(), text);
  assert.ok(parts.length > 10 && parts.every((part) => !part.includes('\ufffd')));
});

test('an empty stop string', () => {
  assert.throws(
    () => decoderOf([], ['a', '']),
    (error: unknown) => error instanceof AprError && error.code === 'USAGE',
  );
});

test.run();
