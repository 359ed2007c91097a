/** The checksum at the end of an .apr file. Opening a model does not read it: it covers every weight. */

import { readChunks } from '../byte-sink.ts';
import type { ByteSource } from '../byte-source.ts';
import { crc32 } from '../crc32.ts';
import { FOOTER_BYTES } from './header.ts';

/** Reads the whole file. Both are CRC-32 over everything but the last four bytes. */
export async function readChecksum(source: ByteSource): Promise<{ stored: number; computed: number }> {
  const end = Math.max(0, source.size - FOOTER_BYTES);
  let computed = 0;
  for await (const chunk of readChunks(source, 0, end)) computed = crc32(chunk, computed);
  const footer = await source.read(end, source.size - end);
  return { stored: new DataView(footer.buffer).getUint32(0, true), computed };
}
