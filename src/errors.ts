/**
 * Every failure that a user can meet is an {@link AprError}. The code is stable and meant for programs, the
 * message is one sentence meant for people: it names the file, tensor or option, what was found and what was
 * expected.
 */

/** Exit status that the command line returns for each code. */
export const EXIT_STATUS = {
  /** An option or argument is unknown, missing or out of range. */
  USAGE: 2,
  /** A file or model reference does not exist. */
  NOT_FOUND: 3,
  /** The bytes are not a model file, or not one that can be read (truncated, unknown version). */
  BAD_FORMAT: 4,
  /** The file is well formed, but holds an architecture, tensor type or tokenizer that is not implemented. */
  UNSUPPORTED: 4,
  /** The file breaks a rule of the model contract (shapes, vocabulary, bounds). */
  CONTRACT: 5,
  /** The backend asked for is not present on this machine. */
  BACKEND_UNAVAILABLE: 5,
  /** An existing file would be overwritten. */
  OVERWRITE: 5,
  /** The model needs more memory than there is. */
  OUT_OF_MEMORY: 6,
  /** The model cannot be loaded for another reason. */
  LOAD_FAILED: 6,
  /** Reading or writing failed. */
  IO: 7,
  /** The chat template raised an error or cannot be rendered. */
  TEMPLATE: 8,
  /** The prompt does not fit the context. */
  CONTEXT_EXCEEDED: 8,
  /** A computation failed or a kernel worker died. */
  INFERENCE: 8,
  /** The engine was disposed. */
  DISPOSED: 8,
  /** Aborted by signal or by the user. */
  ABORTED: 130,
} as const;

export type AprErrorCode = keyof typeof EXIT_STATUS;

/** Facts behind the message, for programs. Values must survive a structured clone. */
export type AprErrorDetails = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** What crosses a thread or process boundary in place of the error itself: both Piscina and Comlink drop codes. */
export interface AprErrorRecord {
  code: AprErrorCode;
  message: string;
  details?: AprErrorDetails;
  stack?: string;
}

export class AprError extends Error {
  readonly code: AprErrorCode;
  readonly details: AprErrorDetails;

  constructor(code: AprErrorCode, message: string, details: AprErrorDetails = {}, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'AprError';
    this.code = code;
    this.details = details;
  }

  /** Exit status that belongs to this error. */
  get exitStatus(): number {
    return EXIT_STATUS[this.code];
  }

  /** Plain record for another thread; {@link AprError.from} turns it back. */
  toRecord(): AprErrorRecord {
    const record: AprErrorRecord = { code: this.code, message: this.message, details: this.details };
    if (this.stack !== undefined) record.stack = this.stack;
    return record;
  }

  /**
   * The given value as an AprError: itself, a record that crossed a thread, or any other throwable wrapped under
   * `fallback`.
   */
  static from(value: unknown, fallback: AprErrorCode = 'INFERENCE'): AprError {
    if (value instanceof AprError) return value;
    if (isRecord(value)) {
      const error = new AprError(value.code, value.message, value.details);
      if (value.stack !== undefined) error.stack = value.stack;
      return error;
    }
    const message = value instanceof Error ? value.message : String(value);
    return new AprError(fallback, message, {}, { cause: value });
  }
}

function isRecord(value: unknown): value is AprErrorRecord {
  if (typeof value !== 'object' || value === null || value instanceof Error) return false;
  const { code, message } = value as Partial<AprErrorRecord>;
  return typeof code === 'string' && code in EXIT_STATUS && typeof message === 'string';
}
