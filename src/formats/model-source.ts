/** What a caller may hand over as a model file. */

/**
 * - a path (on Node) or an address, also a relative one (in a page),
 * - a URL: `http:`, `https:`, `blob:` or `data:`; on Node also `file:`,
 * - the bytes of the file, which must not change while the model loads,
 * - a Blob or File: from a file picker, a drop, or a page's private file system.
 */
export type ModelSource = string | URL | Uint8Array | Blob;

/** What messages call the source: the path or address as it was given, a File's own name, or what it is. */
export function nameOfSource(source: ModelSource): string {
  if (typeof source === 'string') return source;
  if (source instanceof URL) return source.protocol === 'data:' ? 'model in a data: URL' : source.href;
  if (source instanceof Uint8Array) return 'model in memory';
  const { name } = source as Partial<File>;
  return typeof name === 'string' && name !== '' ? name : 'model in a Blob';
}

/** Whether the value is of one of the kinds of {@link ModelSource}; empty text is not. */
export function isModelSource(value: unknown): value is ModelSource {
  if (typeof value === 'string') return value !== '';
  return value instanceof URL || value instanceof Uint8Array || (typeof Blob !== 'undefined' && value instanceof Blob);
}
