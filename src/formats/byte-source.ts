import { AprError } from '../errors.ts';

/**
 * Random access to the bytes of a model file, wherever they are. The platform folders provide implementations
 * (file, Blob, memory); parsers know this interface only.
 */
export interface ByteSource {
  /** What a message calls this source: the path or URL as the user gave it. */
  readonly name: string;
  /** Length in bytes. */
  readonly size: number;
  /**
   * Exactly `length` bytes from `offset`, in memory of their own.
   * @throws AprError BAD_FORMAT when the range ends beyond the source, IO when reading fails
   */
  read(offset: number, length: number): Promise<Uint8Array>;
  /**
   * How a worker opens the same bytes again, since handles do not cross threads. `memory` bytes should lie in a
   * SharedArrayBuffer where there is one, or else each worker gets a copy.
   */
  readonly locator: SourceLocator;
  /** Of a model that is split over several files: these, in order; the source itself is all of them end to end. */
  readonly parts?: readonly ByteSource[];
  close(): Promise<void>;
}

export type SourceLocator =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'blob'; readonly blob: Blob }
  | { readonly kind: 'memory'; readonly bytes: Uint8Array }
  | UrlLocator
  | {
      readonly kind: 'parts';
      /** End to end; `size` is each one's length in bytes. */
      readonly parts: readonly { readonly size: number; readonly locator: SourceLocator }[];
    };

/** A file on a server that sends any range of it. */
export interface UrlLocator {
  readonly kind: 'url';
  /** Where the requests go: behind the redirects of the first one. */
  readonly url: string;
  /** The address before them, for when the other expires. */
  readonly origin: string;
  readonly size: number;
  /** The version of the file, where the server names it: every answer must have the same. */
  readonly etag: string | undefined;
}

/** @throws AprError BAD_FORMAT when `offset … offset + length` is not a range within the source */
export function checkRange({ name, size }: Pick<ByteSource, 'name' | 'size'>, offset: number, length: number): void {
  const whole = Number.isSafeInteger(offset) && Number.isSafeInteger(length);
  if (whole && offset >= 0 && length >= 0 && offset + length <= size) return;
  throw new AprError(
    'BAD_FORMAT',
    `${name}: ${length} bytes from byte ${offset} were asked for, but there are ${size}; ` +
      'the file is damaged or truncated',
    { offset, length, size },
  );
}
