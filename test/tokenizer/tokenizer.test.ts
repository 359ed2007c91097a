import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError } from '../../src/errors.ts';
import { createTokenizer } from '../../src/tokenizer/index.ts';
import { PRE_TOKENIZER_NAMES, preTokenizerOf, splitWords } from '../../src/tokenizer/pre-tokenizer.ts';
import { CUTS, TEXT } from './cuts.ts';
import { ALPHABET, bpeEntries, DEMO, loadTokenizer, metadataOf } from './fixtures.ts';

const make = (entries: Record<string, unknown>) => createTokenizer(metadataOf(entries));

/** SentencePiece vocabulary: unknown, BOS, EOS, 256 bytes, then scored pieces. */
function pieceEntries(pieces: Readonly<Record<string, number>>): Record<string, unknown> {
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...Object.keys(pieces)];
  const scores = tokens.map((token) => pieces[token] ?? 0);
  const types = tokens.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1));
  return { model: 'llama', tokens, scores, token_type: types };
}

const PIECES = { '▁': -8, a: -9, b: -10, ab: -1, '▁a': -2, '▁ab': -0.5, é: -11, '▁▁': -3 };

function failure(run: () => unknown): AprError {
  try {
    run();
  } catch (error) {
    assert.instance(error, AprError, String(error));
    return error as AprError;
  }
  throw new Error('nothing was thrown');
}

test('the demo model: ids of llama.cpp, and the text back', async () => {
  const tokenizer = await loadTokenizer(DEMO);
  const prompt = '<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n';
  const ids = [1022, 84, 82, 290, 198, 287, 269, 220, 17, 10, 17, 30, 1023, 198, 1022, 64, 344, 324, 337, 198];
  assert.equal(tokenizer.encode(prompt, { special: true, addSpecial: true }), ids);
  assert.is(tokenizer.decode(ids, { special: true }), prompt);
  assert.is(tokenizer.decode(ids), 'user\nWhat is 2+2?\nassistant\n');
  const plain = tokenizer.encode(prompt);
  assert.not.ok(plain.some((id) => tokenizer.isControl(id)));
  assert.is(tokenizer.decode(plain), prompt);
  assert.is(tokenizer.vocabularySize, 1024);
  assert.ok(tokenizer.isEndOfGeneration(1023));
  assert.not.ok(tokenizer.isEndOfGeneration(0));
});

test('merges go by rank, then from the left', () => {
  const tokenizer = make(bpeEntries(['b c', 'a b', 'a a', 'aa a']));
  assert.equal(tokenizer.encode('abc'), [97, 256]);
  assert.equal(tokenizer.encode('abab'), [257, 257]);
  assert.equal(tokenizer.encode('aaaaa'), [258, 259]);
  assert.equal(tokenizer.encode('aaa'), [259]);
  assert.equal(tokenizer.encode(''), []);
});

test('a merge with more than one space never applies', () => {
  // No text is written with a space in the alphabet of bytes, so "a b c" is none of "ab" and "c".
  const tokenizer = make(bpeEntries(['a b c', ' a b', 'a b']));
  assert.equal(tokenizer.encode('abc a b'), [258, 99, 32, 97, 32, 98]);
});

test('merges as one by one, by their rank, gives', () => {
  let state = 1;
  const random = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pieces = ['a', 'b', 'c', 'd'];
  const merges: string[] = [];
  while (merges.length < 200) {
    const [one, other] = [pieces[random(pieces.length)]!, pieces[random(pieces.length)]!];
    if (one.length + other.length > 8 || merges.includes(`${one} ${other}`)) continue;
    merges.push(`${one} ${other}`);
    if (!pieces.includes(one + other)) pieces.push(one + other);
  }
  const entries = bpeEntries(merges);
  const tokens = entries.tokens as string[];
  const tokenizer = make(entries);
  for (let round = 0; round < 50; round++) {
    let symbols = Array.from({ length: 1 + random(60) }, () => 'abcd'[random(4)]!);
    const text = symbols.join('');
    for (;;) {
      const ranks = symbols.slice(1).map((right, at) => merges.indexOf(`${symbols[at]} ${right}`));
      const best = Math.min(...ranks.filter((rank) => rank >= 0));
      const at = ranks.indexOf(best);
      if (at < 0) break;
      symbols = [...symbols.slice(0, at), symbols[at]! + symbols[at + 1]!, ...symbols.slice(at + 2)];
    }
    const ids = symbols.map((symbol) => tokens.lastIndexOf(symbol));
    assert.equal(tokenizer.encode(text), ids, text);
  }
});

test('merges over pieces that are no tokens end in bytes', () => {
  const entries = bpeEntries(['a b', 'ab c']);
  (entries.tokens as string[])[256] = 'other';
  const tokenizer = make(entries);
  assert.equal(tokenizer.encode('ab'), [97, 98]);
  assert.equal(tokenizer.encode('abc'), [257]);
});

test('of equal merges the first counts, of equal tokens the last', () => {
  assert.equal(make(bpeEntries(['a b', 'b c', 'a b'])).encode('abc'), [258, 99]);
  const entries = bpeEntries([], { '<x>': 3 });
  const twice = make({
    ...entries,
    tokens: [...(entries.tokens as string[]), '<x>'],
    token_type: [...(entries.token_type as number[]), 3],
  });
  assert.equal(twice.encode('<x>', { special: true }), [257]);
});

test('every byte goes through', () => {
  const tokenizer = make(bpeEntries([]));
  const text = 'é\u0000\u{10ffff}\ufeff日本\r\n';
  assert.equal(tokenizer.encode(text), [...new TextEncoder().encode(text)]);
  assert.is(tokenizer.decode(tokenizer.encode(text)), text);
  // Lone surrogates are no text.
  assert.is(tokenizer.decode(tokenizer.encode('a\ud800b')), 'a\ufffdb');
});

test('a byte that the vocabulary lacks is named when a text needs it', () => {
  const entries = bpeEntries([]);
  (entries.tokens as string[])[0x62] = 'other';
  const tokenizer = make(entries);
  assert.equal(tokenizer.encode('aa'), [97, 97]);
  const error = failure(() => tokenizer.encode('ab'));
  assert.is(error.code, 'CONTRACT');
  assert.match(error.message, 'made-up.gguf: the text contains byte 0x62');
});

test('words of the pre-tokenisers', () => {
  const words = (name: string, text: string): string[] => {
    const bytes = new TextEncoder().encode(text);
    let from = 0;
    return [...splitWords(preTokenizerOf(name)!, bytes, 0, bytes.length)].map((end) => {
      const word = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(from, end));
      from = end;
      return word;
    });
  };
  const cases: [string, string, string[]][] = [
    ['gpt-2', "I'll  go, 1234!\n\n x", ['I', "'ll", ' ', ' go', ',', ' 1234', '!', '\n\n', ' x']],
    ['gpt-2', "WE'LL", ['WE', "'", 'LL']],
    ['llama-bpe', "WE'LL (see) 12345\r\n\n x", ['WE', "'LL", ' (', 'see', ')', ' ', '123', '45', '\r\n\n', ' x']],
    ['llama-bpe', '\t\tfoo;\n\n  ', ['\t', '\tfoo', ';\n\n', '  ']],
    ['qwen2', 'a 12½', ['a', ' ', '1', '2', '½']],
    ['qwen2', '  \n  b', ['  \n', ' ', ' b']],
    ['smollm', 'a 12', ['a', ' ', '1', '2']],
    ['default', 'a=b 1234.', ['a', '=', 'b', ' ', '123', '4', '.']],
    ['deepseek-coder', '\n\n a,b 1中文', ['\n', '\n', ' a', ',', 'b', ' ', '1', '中文']],
    ['gpt-2', '\u0085\ufeffa', ['\u0085', '\ufeff', 'a']],
  ];
  for (const [name, text, expected] of cases)
    assert.equal(words(name, text), expected, `${name} ${JSON.stringify(text)}`);
});

test('one text as every pre-tokeniser cuts it', () => {
  const distinct = new Set(PRE_TOKENIZER_NAMES.map((name) => preTokenizerOf(name)));
  assert.is(Object.keys(CUTS).length, distinct.size);
  const bytes = new TextEncoder().encode(TEXT);
  for (const [name, cuts] of Object.entries(CUTS)) {
    let from = 0;
    const words = [...splitWords(preTokenizerOf(name)!, bytes, 0, bytes.length)].map((end) => {
      const word = new TextDecoder().decode(bytes.subarray(from, end));
      from = end;
      return word;
    });
    assert.is(words.join('|'), cuts, name);
  }
});

test('user-defined tokens always, control tokens on demand', () => {
  const tokenizer = make(bpeEntries([], { '<u>': 4, '<c>': 3, '<unk>': 2, '<c><u>': 3 }));
  assert.equal(tokenizer.encode('a<u>b'), [97, 256, 98]);
  assert.equal(tokenizer.encode('<c>'), [60, 99, 62]);
  assert.equal(tokenizer.encode('<c><unk>', { special: true }), [257, 258]);
  assert.equal(tokenizer.encode('<c><u><c>', { special: true }), [259, 257]);
  assert.is(tokenizer.decode([97, 256, 257]), 'a<u>');
  assert.is(tokenizer.decode([97, 257], { special: true }), 'a<c>');
  assert.is(tokenizer.typeOf(256), 'userDefined');
});

test('of overlapping special tokens the longest in the text goes first', () => {
  const tokenizer = make(bpeEntries([], { abc: 4, cdefg: 4, bb: 4 }));
  assert.equal(tokenizer.encode('abcdefg'), [97, 98, 257]);
  assert.equal(tokenizer.encode('abbb'), [97, 258, 98]);
  assert.equal(tokenizer.encode('bbbb'), [258, 258]);
  assert.equal(tokenizer.encode('abcabcd'), [256, 256, 100]);
});

test('segments: merges run over their borders, control tokens stay within the special ones', () => {
  const tokenizer = make(bpeEntries(['a b'], { '<c>': 3, '<u>': 4 }));
  const segments = (...parts: [string, boolean][]) => parts.map(([text, special]) => ({ text, special }));
  const encode = (...parts: [string, boolean][]) => tokenizer.encode(segments(...parts), { special: true });
  assert.equal(encode(['a', true], ['b', false]), [256]);
  assert.equal(encode(['<c>', true], ['<c>', false], ['<c>', true]), [257, 60, 99, 62, 257]);
  assert.equal(encode(['<', true], ['c>', false]), [60, 99, 62]);
  assert.equal(encode(['<c', false], ['>', true]), [60, 99, 62]);
  assert.equal(encode(['<', true], ['c', true], ['>', true]), [257]);
  assert.equal(encode(['<u>', false]), [258]);
  assert.equal(tokenizer.encode(segments(['<c>', true])), [60, 99, 62]);
});

test('splitting a text at control tokens', () => {
  const tokenizer = make(bpeEntries([], { '<c>': 3, '<u>': 4 }));
  assert.equal(tokenizer.splitControl('é<c><u>'), [
    { text: 'é', special: false },
    { text: '<c>', special: true },
    { text: '<u>', special: false },
  ]);
  assert.equal(tokenizer.splitControl('\ud800<u>'), [{ text: '\ud800<u>', special: false }]);
});

test('BOS and EOS', () => {
  const special = { '<b>': 3, '<e>': 3 };
  const entries = { ...bpeEntries([], special), bos_token_id: 256, eos_token_id: 257 };
  assert.equal(make(entries).encode('a', { addSpecial: true }), [97]);
  const asks = make({ ...entries, add_bos_token: true, add_eos_token: true });
  assert.equal(asks.encode('a', { addSpecial: true }), [256, 97, 257]);
  assert.equal(asks.encode('a'), [97]);
  assert.equal(asks.encode('<b>a<e>', { special: true, addSpecial: true }), [256, 97, 257]);
  assert.equal(asks.encode('<b>', { addSpecial: true }), [256, 60, 98, 62, 257]);
  assert.equal(make({ ...entries, pre: 'llama-bpe' }).encode('a', { addSpecial: true }), [256, 97]);
  assert.equal(make({ ...entries, pre: 'llama-bpe', add_bos_token: false }).encode('a', { addSpecial: true }), [97]);
  assert.is(make({ ...entries, pre: 'llama-bpe', bos_token_id: undefined }).addBos, false);
  const undeclared = make({ ...entries, add_bos_token: true, bos_token_id: undefined });
  assert.is(undeclared.addBos, false);
  assert.equal(undeclared.undeclaredSpecialTokens, {
    'tokenizer.ggml.add_bos_token': 'tokenizer.ggml.bos_token_id',
  });
  assert.equal(asks.undeclaredSpecialTokens, {});
});

test('special tokens beyond the vocabulary are none', () => {
  const entries = bpeEntries([], { '<b>': 3, '<e>': 3 });
  const tokenizer = make({ ...entries, bos_token_id: 258, add_bos_token: true, eos_token_id: 4_294_967_295 });
  assert.equal(tokenizer.declaredSpecialTokens, {
    'tokenizer.ggml.bos_token_id': 258,
    'tokenizer.ggml.eos_token_id': 4_294_967_295,
  });
  assert.equal([tokenizer.bosId, tokenizer.eosId, tokenizer.addBos], [undefined, undefined, false]);
  assert.equal(tokenizer.undeclaredSpecialTokens, {});
  assert.equal(tokenizer.encode('a', { addSpecial: true }), [97]);
  assert.equal(tokenizer.endOfGenerationIds, []);
});

test('ends of generation', () => {
  const known = { '<|im_end|>': 3, '<|endoftext|>': 1, '<x>': 3, '<y>': 3, '<|fim_pad|>': 4 };
  const tokenizer = make({ ...bpeEntries([], known), eot_token_id: 258 });
  assert.equal(tokenizer.endOfGenerationIds, [256, 257, 258, 260]);
  assert.ok(tokenizer.isControl(257), 'known texts are control tokens whatever the file says');
  assert.not.ok(make(bpeEntries([])).isEndOfGeneration(0));
  assert.equal(make({ ...bpeEntries([], { '<x>': 3 }), eos_token_id: 0 }).endOfGenerationIds, [0]);
  const harmony = { '<|end|>': 3, '<|return|>': 3, '<|call|>': 3 };
  assert.equal(make(bpeEntries([], harmony)).endOfGenerationIds, [257, 258]);
});

test('a whole word is taken without merging where the pre-tokeniser says so', () => {
  const entries = bpeEntries(['a b'], { abc: 1 });
  assert.equal(make(entries).encode('abc'), [256, 99]);
  assert.equal(make({ ...entries, pre: 'llama-bpe' }).encode('abc'), [257]);
});

test('SentencePiece: best score first, bytes for the rest', () => {
  const tokenizer = make(pieceEntries(PIECES));
  const id = (piece: string): number => 259 + Object.keys(PIECES).indexOf(piece);
  assert.equal(tokenizer.encode('ab'), [id('▁ab')]);
  assert.equal(tokenizer.encode('a b'), [id('▁a'), id('▁'), id('b')]);
  assert.equal(tokenizer.encode('éü'), [id('▁'), id('é'), 3 + 0xc3, 3 + 0xbc]);
  assert.is(tokenizer.decode(tokenizer.encode(' ab éü\n')), ' ab éü\n');
  assert.equal(tokenizer.encode('ab', { addSpecial: true }), [1, id('▁ab')]);
  assert.equal(tokenizer.encode('<s>ab</s>ab', { special: true }), [1, id('▁ab'), 2, id('▁ab')]);
  assert.is(tokenizer.decode([1, id('▁ab')]), 'ab');
  assert.is(tokenizer.tokenText(id('▁ab')), ' ab');
  assert.equal(make({ ...pieceEntries(PIECES), add_space_prefix: false }).encode('ab'), [id('ab')]);
  assert.equal([tokenizer.bosId, tokenizer.eosId, tokenizer.unknownId], [1, 2, 0]);
  assert.ok(tokenizer.isEndOfGeneration(2));
});

test('SentencePiece without byte tokens: the unknown token, or an error that names the character', () => {
  const entries = { model: 'llama', tokens: ['<unk>', '▁', 'a'], scores: [0, -1, -2], add_space_prefix: false };
  const bare = { ...entries, add_bos_token: false };
  assert.equal(make({ ...bare, token_type: [2, 1, 1] }).encode('aü'), [2, 0]);
  const error = failure(() => make(bare).encode('aü'));
  assert.is(error.code, 'CONTRACT');
  assert.match(error.message, '"ü"');
});

test('plain text never becomes a control or byte token by merging', () => {
  const entries = bpeEntries(['< c', '<c >']);
  (entries.token_type as number[])[257] = 3;
  const tokenizer = make(entries);
  assert.equal(tokenizer.encode('<c>'), [60, 99, 62]);
  assert.equal(tokenizer.encode('<c>', { special: true }), [257]);
});

test('Phi-3 swallows white space behind its special tokens', () => {
  const entries = { ...bpeEntries([], { '<c>': 3, '<s>': 3 }), 'general.name': 'Phi-3 mini' };
  assert.equal(make(entries).encode('<c> \na<s> a', { special: true }), [256, 97, 257, 32, 97]);
});

test('broken metadata', () => {
  const entries = { ...bpeEntries(['a b'], { '<c>': 3 }) };
  const cases: [string, Record<string, unknown>, string, RegExp][] = [
    ['no model', { model: undefined }, 'UNSUPPORTED', /tokenizer\.ggml\.model is missing/],
    ['another model', { model: 'bert' }, 'UNSUPPORTED', /model is "bert", WordPiece, which no architecture here uses/],
    [
      'an unknown model',
      { model: 'toString' },
      'UNSUPPORTED',
      /model is "toString", which is not known; expected gpt2/,
    ],
    ['unknown pre', { pre: 'tekkno' }, 'UNSUPPORTED', /tokenizer\.ggml\.pre is "tekkno".*qwen2/],
    ['a name of Object', { pre: 'constructor' }, 'UNSUPPORTED', /"constructor"/],
    ['no tokens', { tokens: undefined }, 'BAD_FORMAT', /tokenizer\.ggml\.tokens is missing/],
    ['no merges', { merges: undefined }, 'BAD_FORMAT', /tokenizer\.ggml\.merges is missing/],
    ['merge of one', { merges: ['a b', 'ab'] }, 'BAD_FORMAT', /merges\[1\] is "ab"/],
    ['merge of nothing', { merges: [''] }, 'BAD_FORMAT', /merges\[0\]/],
    ['half a merge', { merges: ['a '] }, 'BAD_FORMAT', /merges\[0\]/],
    ['merges of numbers', { merges: [1] }, 'BAD_FORMAT', /tokenizer\.ggml\.merges/],
    [
      'too few types',
      { token_type: [1, 1] },
      'BAD_FORMAT',
      /token_type has 2 entries, expected one for each of the 258/,
    ],
    ['negative EOS', { eos_token_id: -1 }, 'BAD_FORMAT', /eos_token_id/],
    [
      'foreign merges',
      { merges: Array.from({ length: 70_000 }, (_, i) => `${i} x`) },
      'CONTRACT',
      /2048 make no token/,
    ],
  ];
  for (const [name, change, code, message] of cases) {
    const error = failure(() => make({ ...entries, ...change }));
    assert.is(error.code, code, name);
    assert.match(error.message, message, name);
    assert.match(error.message, /^made-up\.gguf: /, name);
  }
  const piece = pieceEntries(PIECES);
  assert.match(failure(() => make({ ...piece, scores: undefined })).message, /scores is missing/);
  assert.match(failure(() => make({ ...piece, scores: [1] })).message, /scores has 1 entries/);
  const scores = (piece.scores as number[]).map((score, id) => (id === 5 ? Number.NaN : score));
  assert.match(failure(() => make({ ...piece, scores })).message, /scores\[5\] is not a number/);
});

test('odd but usable metadata', () => {
  const tokens = [...ALPHABET, '', '', Uint8Array.of(0xff, 0xfe), 'é日', '<c>'];
  const types = tokens.map((_, id) => (id === 260 ? 3 : id === 256 ? 99 : 1));
  const tokenizer = make({ model: 'gpt2', tokens, merges: ['a b'], token_type: types });
  assert.equal(tokenizer.encode('ab<c>', { special: true }), [97, 98, 260]);
  assert.equal([...tokenizer.tokenBytes(256)], []);
  assert.equal([...tokenizer.tokenBytes(257)], []);
  assert.equal([...tokenizer.tokenBytes(258)], [0xff, 0xfe]);
  // What is not of the alphabet stands for itself.
  assert.is(tokenizer.tokenText(259), '\ufffd日');
  for (const id of [-1, 261, 0.5, Number.NaN]) assert.is(failure(() => tokenizer.tokenBytes(id)).code, 'USAGE');
  assert.is(failure(() => tokenizer.decode([97, 999])).code, 'USAGE');
});

test('a long word is merged like short ones', () => {
  // Short words go through a heap, long ones through buckets; a piece of its own vocabulary shows the order of merges.
  const tokenizer = make(bpeEntries(['b c', 'a b', 'a a', 'aa a', 'aa aa', 'c a', 'ab ab', 'bc a', 'aaaa aa']));
  let seed = 1;
  const letter = (): string => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return 'aaabc'[Math.floor((seed / 2 ** 32) * 5)]!;
  };
  const word = Array.from({ length: 20_000 }, letter).join('');
  // No merge crosses "cb": where it is cut there, each part by itself gives the same ids.
  const parts = word.split(/(?<=c)(?=b)/);
  assert.ok(Math.max(...parts.map(({ length }) => length)) < 1024);
  assert.equal(
    tokenizer.encode(word),
    parts.flatMap((part) => tokenizer.encode(part)),
  );
});

// Quadratic steps anywhere would make this last for minutes.
test('a long run of one thing', async () => {
  const tokenizer = await loadTokenizer(DEMO);
  const long = make(bpeEntries(['a a', 'aa aa', 'aaaa aaaa', 'Ġ Ġ', 'ĠĠ ĠĠ'], { '<<': 3, '<<<<': 3 }));
  const piece = make(pieceEntries(PIECES));
  for (const unit of ['a', ' ', '\n', ' \n', '<', '日', "'", '1', '\u3000']) {
    const text = unit.repeat(2 ** 16);
    for (const each of [tokenizer, long, piece]) {
      const ids = each.encode(text, { special: true });
      assert.ok(each.decode(ids, { special: true }) === text, JSON.stringify(unit));
    }
  }
  assert.is(long.encode('a'.repeat(2 ** 20)).length, 2 ** 17);
});

test.run();
