/** Finds out what a file is by its first bytes, and reads its header. */

import { AprError } from '../errors.ts';
import type { ByteSource } from './byte-source.ts';
import { parseGguf } from './gguf/parse.ts';
import type { ModelFile } from './model-file.ts';

/** @throws AprError BAD_FORMAT saying what the file seems to be, UNSUPPORTED for formats that are known but not read */
export async function openModel(source: ByteSource): Promise<ModelFile> {
  if (source.size === 0) throw new AprError('BAD_FORMAT', `${source.name}: the file is empty (0 bytes), expected a GGUF model`);
  const head = await source.read(0, Math.min(source.size, 64));
  const text = String.fromCharCode(...head);
  if (text.startsWith('GGUF')) return parseGguf(source);
  if (text.startsWith('APR\0') || text.startsWith('APR2')) {
    throw new AprError('UNSUPPORTED', `${source.name}: an .apr version 2 file; this version reads GGUF only`);
  }
  if (text.startsWith('APRN') || text.startsWith('APR1')) {
    throw new AprError('UNSUPPORTED', `${source.name}: an .apr version 1 file, which holds no language model; expected GGUF`);
  }
  throw new AprError('BAD_FORMAT', `${source.name}: not a model file: ${describe(text)}; expected a GGUF model`);
}

/** What the bytes seem to be, for people who downloaded the wrong thing. */
function describe(text: string): string {
  const trimmed = text.trimStart().toLowerCase();
  if (trimmed.startsWith('<!doctype html') || trimmed.startsWith('<html')) return 'it is an HTML page, perhaps an error page saved as a model';
  if (text.startsWith('version https://git-lfs')) return 'it is a Git LFS pointer, not the file that it points to (git lfs pull fetches it)';
  if (text.startsWith('PK\x03\x04')) return 'it is a ZIP archive, perhaps a PyTorch checkpoint';
  if (text.charCodeAt(8) === 0x7b) return 'it looks like a safetensors file';
  if (trimmed.startsWith('{')) return 'it is JSON text';
  const first = [...text.slice(0, 4)].map((char) => char.charCodeAt(0).toString(16).padStart(2, '0')).join(' ');
  return `it begins with the bytes ${first}, a GGUF file with 47 47 55 46`;
}
