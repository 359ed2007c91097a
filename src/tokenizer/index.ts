export { StreamingDecoder, type StreamingDecoderOptions } from './streaming-decoder.ts';
export {
  createTokenizer,
  type EncodeOptions,
  type TextSegment,
  type Tokenizer,
  type TokenType,
} from './tokenizer.ts';
