/** How text between special tokens becomes tokens. */
export interface TokenModel {
  /** Whether BOS is added when the file does not say. */
  readonly addBos: boolean;
  /** Whether a space is put before text that begins the input or follows a special token. */
  readonly addSpacePrefix: boolean;
  /** Appends the tokens of well-formed UTF-8; `first` as {@link addSpacePrefix} means it. */
  encode(bytes: Uint8Array, start: number, end: number, out: number[], first: boolean): void;
  /** Bytes that a token stands for; control tokens stand for their text. */
  render(id: number): Uint8Array;
}
