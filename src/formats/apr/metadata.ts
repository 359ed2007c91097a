/** Metadata of an .apr file under the keys of GGUF. */

import { AprError } from '../../errors.ts';
import { GgufMetadata, type MetadataEntry } from '../gguf/metadata.ts';
import { foreignMetadata } from './foreign.ts';
import { type AprHeader, FLAG } from './header.ts';
import { parseJson } from './json.ts';
import { fromTypedJson, isObject, kindOf } from './typed-json.ts';

/** The largest vocabularies with their merges come to some 25 MB. JSON costs several times its size once parsed. */
export const MAX_METADATA_BYTES = 1 << 26;

export class AprMetadata extends GgufMetadata {
  readonly #hasVocabularyFlag: boolean;

  constructor(sourceName: string, entries: ReadonlyMap<string, MetadataEntry>, hasVocabularyFlag: boolean) {
    super(sourceName, entries);
    this.#hasVocabularyFlag = hasVocabularyFlag;
  }

  /** @throws AprError BAD_FORMAT also where the tokenizer is asked for and the file has none */
  override string(key: string): string | undefined {
    const value = super.string(key);
    if (value !== undefined || key !== 'tokenizer.ggml.model') return value;
    const flag = this.#hasVocabularyFlag ? 'is set all the same' : 'is not set either';
    throw new AprError(
      'BAD_FORMAT',
      `${this.sourceName}: the .apr file has no tokenizer; looked in its metadata for "gguf.metadata" with ` +
        `"tokenizer.ggml.model" and "tokenizer.ggml.tokens", and for "tokenizer.vocabulary" with "tokenizer.merges"; ` +
        `the flag HAS_VOCAB ${flag}, and files beside it (tokenizer.json) are not read; ` +
        'convert the model anew from its GGUF file',
      { key },
    );
  }
}

/**
 * @param bytes the metadata section, without its padding
 * @throws AprError BAD_FORMAT, UNSUPPORTED
 */
export function readMetadata(sourceName: string, header: AprHeader, bytes: Uint8Array): AprMetadata {
  const root = parseJson(sourceName, bytes);
  if (!isObject(root)) {
    throw new AprError('BAD_FORMAT', `${sourceName}: the metadata is ${kindOf(root)}, expected a JSON object`);
  }
  const gguf = Object.hasOwn(root, 'gguf') ? root.gguf : undefined;
  let entries: Map<string, MetadataEntry>;
  if (gguf === undefined) entries = foreignMetadata(sourceName, root);
  else {
    if (!isObject(gguf))
      throw new AprError('BAD_FORMAT', `${sourceName}: metadata "gguf" is ${kindOf(gguf)}, expected an object`);
    entries = fromTypedJson(sourceName, gguf.metadata ?? null, root);
  }
  return new AprMetadata(sourceName, entries, (header.flags & FLAG.hasVocabulary) !== 0);
}
