/**
 * Pre-tokenisers of byte-level BPE: text is cut into words, and merges never cross a cut. Each is one or more regular
 * expressions in the model's origin. Which name means which expressions, and what they find where they are at odds
 * with their origin, is taken from llama.cpp (src/llama-vocab.cpp, src/unicode.cpp).
 */

import {
  isAfmoeScript,
  isAsian,
  isBloomLetter,
  isBopomofo,
  isCasedLetter,
  isDeepseekSymbol,
  isFalconSymbol,
  isHangul,
  isIdeographOrKana,
  isLetter,
  isLineFeed,
  isNoLineFeed,
  isNumber,
  isPunctuation,
  isPunctuationOrSymbol,
  isWidePunctuation,
} from './character-sets.ts';
import { codePoints, PUNCTUATION } from './code-points.ts';
import {
  digitTriples,
  Ends,
  firstOf,
  group,
  groupsFromRight,
  isBreak,
  isDigit,
  type Matcher,
  matches,
  run,
  type Step,
  trailingSpace,
  upTo,
} from './cuts.ts';
import { deepseekWords, gpt2Words, isAsciiSymbol, modernWords, spacesByPowers, type WordRules } from './words.ts';

export interface PreTokenizer {
  /** Cuts applied one after the other, each within the pieces of the one before. */
  readonly steps: readonly Step[];
  /** A word that is a token as a whole is taken without merging. */
  readonly ignoreMerges: boolean;
  /** Whether BOS is added when the file does not say. */
  readonly addBos: boolean;
}

/** Ends of the words of well-formed UTF-8 `bytes[start … end)`, as positions in the bytes. */
export function splitWords(preTokenizer: PreTokenizer, bytes: Uint8Array, start: number, end: number): Uint32Array {
  const text = codePoints(bytes, start, end);
  let pieces = new Ends();
  pieces.push(text.length);
  for (const step of preTokenizer.steps) {
    const next = new Ends();
    for (let i = 0, from = 0; i < pieces.length; i++) {
      const to = pieces.values[i]!;
      step(text, from, to, next);
      from = to;
    }
    pieces = next;
  }
  return pieces.values.subarray(0, pieces.length).map((piece) => text.offsets[piece]!);
}

const define = (...steps: readonly Step[]): PreTokenizer => ({ steps, ignoreMerges: false, addBos: false });
const modern = (rules: WordRules): PreTokenizer => define(modernWords(rules));

const SINGLE_NUMBERS = /* @__PURE__ */ matches(/* @__PURE__ */ upTo(isNumber, 1));
const TRIPLE_NUMBERS = /* @__PURE__ */ matches(/* @__PURE__ */ upTo(isNumber, 3));
const NUMBERS = /* @__PURE__ */ matches(/* @__PURE__ */ run(isNumber));
const DIGIT_TRIPLES = /* @__PURE__ */ matches(/* @__PURE__ */ group(isDigit, 3));
const BREAKS = /* @__PURE__ */ matches(/* @__PURE__ */ upTo(isBreak, 1));
const ASIAN = /* @__PURE__ */ matches(/* @__PURE__ */ run(isAsian));
const IDEOGRAPHS = /* @__PURE__ */ matches(/* @__PURE__ */ run(isIdeographOrKana));
const LINES = /* @__PURE__ */ matches(/* @__PURE__ */ firstOf(run(isNoLineFeed), run(isLineFeed)));

/** ` ?[^(\s|.,!?…。，、।۔،)]+` */
const bloomWords: Step = /* @__PURE__ */ matches((text, at, end) => {
  const body = text.values[at] === 0x20 ? at + 1 : at;
  return run(isBloomLetter)(text, body, end);
});

const literal = ({ values }: { readonly values: Uint32Array }, at: number, end: number, text: string): number => {
  if (end - at < text.length) return -1;
  for (let i = 0; i < text.length; i++) if (values[at + i] !== text.charCodeAt(i)) return -1;
  return at + text.length;
};

/** `<sentinel:[0-9]+>` */
const sentinel: Matcher = (text, at, end) => {
  let stop = literal(text, at, end, '<sentinel:');
  if (stop < 0 || !isDigit(text.values[stop]!)) return -1;
  while (stop < end && isDigit(text.values[stop]!)) stop++;
  return literal(text, stop, end, '>');
};

/** `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z` */
const image: Matcher = (text, at, end) => {
  const body = literal(text, at, end, 'IMGIMG');
  if (body < 0) return -1;
  const stop = upTo((value) => value >= 0x41 && value <= 0x49, 4)(text, body, end);
  return stop < 0 ? -1 : literal(text, stop, end, 'Z');
};

/** `[\t\n]|    |  ` */
const indentation: Matcher = (text, at, end) => {
  if (text.values[at] === 0x09 || text.values[at] === 0x0a) return at + 1;
  const four = literal(text, at, end, '    ');
  return four >= 0 ? four : literal(text, at, end, '  ');
};

const GPT2 = /* @__PURE__ */ define(gpt2Words);
const DEFAULT = /* @__PURE__ */ define(
  /* @__PURE__ */ matches(run(isPunctuationOrSymbol)),
  gpt2Words,
  NUMBERS,
  DIGIT_TRIPLES,
);
/** Every number by itself first: `\p{N}`. */
const SINGLES_AND_GPT2 = /* @__PURE__ */ define(SINGLE_NUMBERS, gpt2Words);
const FALCON = /* @__PURE__ */ define(/* @__PURE__ */ matches(run(isFalconSymbol)), gpt2Words, DIGIT_TRIPLES);
const QWEN2 = /* @__PURE__ */ modern({ digits: 1 });
const QWEN35 = /* @__PURE__ */ modern({ words: 'lettersAndMarks', digits: 1, symbolsWithoutMarks: true });
const SEED_CODER = /* @__PURE__ */ modern({ digits: 1, tail: 'none' });
const UFAKZEKA = /* @__PURE__ */ modern({ digits: 1, contractions: 'none' });
const EXAONE_MOE = /* @__PURE__ */ modern({ words: 'spacedLetters', digits: 1, tail: 'breakOrSlash' });
const LAGUNA = /* @__PURE__ */ define(LINES, /* @__PURE__ */ modernWords({ digits: 1 }));
const TRIPLE_DIGITS = /* @__PURE__ */ modern({ digits: 3 });
const LLAMA3: PreTokenizer = { ...TRIPLE_DIGITS, ignoreMerges: true, addBos: true };
const JAIS2 = /* @__PURE__ */ define(/* @__PURE__ */ modernWords({ digits: 3 }), spacesByPowers);
const MINICPM5: PreTokenizer = {
  ...define(TRIPLE_NUMBERS, /* @__PURE__ */ modernWords({ digits: Number.POSITIVE_INFINITY })),
  ignoreMerges: true,
};
const KIMI_K2 = /* @__PURE__ */ modern({ words: 'lettersWithoutHan', contractions: 'attached', digits: 3 });
const TEKKEN: PreTokenizer = {
  ...modern({ words: 'casedLetters', contractions: 'none', digits: 1, tail: 'breaksAndSlashes' }),
  ignoreMerges: true,
  addBos: true,
};
const GPT4O = /* @__PURE__ */ modern({
  words: 'casedLetters',
  contractions: 'attached',
  digits: 3,
  tail: 'breaksAndSlashes',
});
const GRANITE_EMBEDDING: PreTokenizer = {
  ...modern({ words: 'casedLettersAndMarks', contractions: 'attached', digits: 3, tail: 'breaksAndSlashes' }),
  ignoreMerges: true,
};
const markedWords = (digits: number): Step =>
  modernWords({ words: 'lettersAndMarks', contractions: 'attached', digits, tail: 'breaksAndSlashes' });
const TINY_AYA = /* @__PURE__ */ define(groupsFromRight, /* @__PURE__ */ markedWords(3));
const YOUTU: PreTokenizer = {
  ...define(
    matches(firstOf(run(isHangul), run(isWidePunctuation), run(isBopomofo), run(isIdeographOrKana))),
    markedWords(1),
  ),
  ignoreMerges: true,
};
const SUPERBPE = /* @__PURE__ */ define(NUMBERS, digitTriples);
const DEEPSEEK_CODER = /* @__PURE__ */ define(
  BREAKS,
  /* @__PURE__ */ matches(run(isLetter, true)),
  /* @__PURE__ */ matches(run(isPunctuation, true)),
  ASIAN,
  SINGLE_NUMBERS,
);
const DEEPSEEK_LLM = /* @__PURE__ */ define(
  BREAKS,
  /* @__PURE__ */ matches(run(isCasedLetter, true)),
  /* @__PURE__ */ matches(run(isDeepseekSymbol, true)),
  trailingSpace,
  ASIAN,
  NUMBERS,
);
const DEEPSEEK_V3 = /* @__PURE__ */ define(TRIPLE_NUMBERS, IDEOGRAPHS, /* @__PURE__ */ deepseekWords('joined'));
const SPARK = /* @__PURE__ */ define(
  TRIPLE_NUMBERS,
  IDEOGRAPHS,
  /* @__PURE__ */ deepseekWords('single'),
  SINGLE_NUMBERS,
);
const AFMOE = /* @__PURE__ */ define(
  groupsFromRight,
  /* @__PURE__ */ matches(run(isAfmoeScript)),
  /* @__PURE__ */ deepseekWords('joined'),
);
const BLOOM = /* @__PURE__ */ define(bloomWords);
const VIKING = /* @__PURE__ */ define(bloomWords, SINGLE_NUMBERS);
const CHAMELEON: PreTokenizer = {
  ...define(
    matches(sentinel),
    matches(image),
    matches(indentation),
    SINGLE_NUMBERS,
    matches(upTo((value, kind) => kind === PUNCTUATION || isAsciiSymbol(value), 1)),
    gpt2Words,
  ),
  addBos: true,
};

const NAMES: readonly (readonly [PreTokenizer, string])[] = [
  [DEFAULT, 'default'],
  [GPT2, 'gpt-2 phi-2 mpt olmo jais trillion exaone4 gigachat mellum a.x-4.0 granite-docling modern-bert'],
  [GPT2, 'jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe'],
  [SINGLES_AND_GPT2, 'smollm starcoder refact command-r codeshell exaone minerva-7b mellum2'],
  [FALCON, 'falcon'],
  [QWEN2, 'qwen2 deepseek-r1-qwen megrez kormo f2llmv2 stablelm2 hunyuan solar-open grok-2'],
  [QWEN2, 'bailingmoe bailingmoe2 llada-moe'],
  [QWEN35, 'qwen35'],
  [SEED_CODER, 'seed-coder'],
  [UFAKZEKA, 'ufakzeka'],
  [EXAONE_MOE, 'exaone-moe'],
  [LAGUNA, 'laguna'],
  [TRIPLE_DIGITS, 'dbrx smaug-bpe glm4 chatglm-bpe'],
  [LLAMA3, 'llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano'],
  [JAIS2, 'jais-2'],
  [MINICPM5, 'minicpm5'],
  [KIMI_K2, 'kimi-k2'],
  [TEKKEN, 'tekken'],
  [GPT4O, 'gpt-4o llama4 kanana2 talkie minimax-m2'],
  [GRANITE_EMBEDDING, 'granite-embed-multi-97m'],
  [TINY_AYA, 'tiny_aya cohere2moe'],
  [YOUTU, 'youtu'],
  [SUPERBPE, 'superbpe'],
  [DEEPSEEK_CODER, 'deepseek-coder'],
  [DEEPSEEK_LLM, 'deepseek-llm'],
  [DEEPSEEK_V3, 'deepseek-v3 hunyuan-dense joyai-llm hy_v4'],
  [SPARK, 'spark2_5'],
  [AFMOE, 'afmoe'],
  [BLOOM, 'poro-chat bloom gpt3-finnish'],
  [VIKING, 'viking'],
  [CHAMELEON, 'chameleon'],
];

const BY_NAME: ReadonlyMap<string, PreTokenizer> = /* @__PURE__ */ new Map(
  /* @__PURE__ */ NAMES.flatMap(([preTokenizer, names]) =>
    names.split(' ').map((name) => [name, preTokenizer] as const),
  ),
);

/** The pre-tokeniser of that `tokenizer.ggml.pre`, undefined for an unknown name. */
export function preTokenizerOf(name: string): PreTokenizer | undefined {
  return BY_NAME.get(name);
}

export const PRE_TOKENIZER_NAMES: readonly string[] = /* @__PURE__ */ [...BY_NAME.keys()];
