/** What a file is, told from its first bytes; of files that are no models, what they usually are. */

/** First four bytes of GGUF files, and of .apr files of both versions. */
export const MODEL_MAGICS: readonly string[] = ['GGUF', 'APR\0', 'APR1', 'APR2', 'APRN'];

const SIGNATURES: readonly (readonly [prefix: string, meaning: string])[] = [
  ['version https://git-lfs', 'it is a Git LFS pointer, not the file that it stands for (git lfs pull fetches that)'],
  ['PK\x03\x04', 'it is a ZIP archive, perhaps a PyTorch checkpoint'],
  ['PK\x05\x06', 'it is an empty ZIP archive'],
  ['\x80\x02', 'it is a Python pickle, perhaps a PyTorch checkpoint'],
  ['\x80\x03', 'it is a Python pickle, perhaps a PyTorch checkpoint'],
  ['\x80\x04', 'it is a Python pickle, perhaps a PyTorch checkpoint'],
  ['\x80\x05', 'it is a Python pickle, perhaps a PyTorch checkpoint'],
  ['\x89HDF', 'it is an HDF5 file, perhaps a Keras model'],
  ['\x1f\x8b', 'it is compressed with gzip; unpack it first'],
  ['\x28\xb5\x2f\xfd', 'it is compressed with Zstandard; unpack it first'],
  ['\xfd7zXZ', 'it is compressed with xz; unpack it first'],
  ['BZh', 'it is compressed with bzip2; unpack it first'],
  // Magic numbers of ggml's formats before GGUF, written as little-endian integers.
  ['lmgg', 'it is a GGML file from before GGUF; convert the model anew'],
  ['fmgg', 'it is a GGMF file from before GGUF; convert the model anew'],
  ['tjgg', 'it is a GGJT file from before GGUF; convert the model anew'],
  ['algg', 'it is a GGLA adapter from before GGUF, and no model'],
];

/**
 * What the bytes seem to be, as a clause for a message.
 * @param head the first bytes, some hundred of them
 * @param size of the whole file
 */
export function describeBytes(head: Uint8Array, size: number): string {
  const text = Array.from(head, (byte) => String.fromCharCode(byte)).join('');
  const known = SIGNATURES.find(([prefix]) => text.startsWith(prefix));
  if (known !== undefined) return known[1];
  if (isSafetensors(head, text, size)) return 'it looks like a safetensors file; convert it to GGUF first';
  const start = text
    .replace(/^\xef\xbb\xbf/, '')
    .trimStart()
    .toLowerCase();
  if (/^<(!doctype html|html|head|body)\b/.test(start))
    return 'it is an HTML page, perhaps an error page saved in its place';
  if (/^<[?!a-z]/.test(start)) return 'it is XML text, perhaps an error message saved in its place';
  if (/^[{[]/.test(start)) return 'it is JSON text';
  if (head.every((byte) => byte === 0)) return 'it begins with zeros only, perhaps a download that was never completed';
  if (/^[\t\n\r\x20-\x7e]+$/.test(text))
    return `it is text that begins with "${text.trim().slice(0, 24).replace(/\s+/g, ' ')}"`;
  const first = Array.from(head.subarray(0, 4), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  return `it begins with the bytes ${first}, a GGUF file with 47 47 55 46`;
}

/** A safetensors file begins with the length of its JSON header as a 64-bit integer, then that header. */
function isSafetensors(head: Uint8Array, text: string, size: number): boolean {
  if (head.length < 9 || text[8] !== '{') return false;
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  return view.getBigUint64(0, true) <= BigInt(size - 8);
}
