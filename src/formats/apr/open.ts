/** Reads an .apr file, version 2: header, JSON metadata and tensor index; no weight. */

import { AprError } from '../../errors.ts';
import type { ByteSource } from '../byte-source.ts';
import type { ModelFile } from '../model-file.ts';
import { HEADER_BYTES, readHeader } from './header.ts';
import { MAX_METADATA_BYTES, readMetadata } from './metadata.ts';
import { indexExtent, readIndex } from './tensor-index.ts';

/** @throws AprError BAD_FORMAT naming what is damaged, UNSUPPORTED (version, flags, types of tensors) */
export async function openApr(source: ByteSource): Promise<ModelFile> {
  const { name, size } = source;
  const header = readHeader(name, await source.read(0, Math.min(HEADER_BYTES, size)), size);
  if (header.metadataSize > MAX_METADATA_BYTES) {
    const message = `${name}: the metadata has ${header.metadataSize} bytes, expected at most ${MAX_METADATA_BYTES}`;
    throw new AprError('BAD_FORMAT', message);
  }
  const extent = indexExtent(name, header, size);
  const metadata = readMetadata(name, header, await source.read(header.metadataOffset, header.metadataSize));
  const tensors = readIndex(source, header, await source.read(header.indexOffset, extent));
  return { format: 'apr', version: 2, source, metadata, tensors };
}
