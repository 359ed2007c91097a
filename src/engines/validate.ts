/** A model file held against the contract that running it checks, with every finding instead of the first. */

import { WASM_TYPES } from '../backends/wasm/create.ts';
import { createChatTemplate } from '../chat/index.ts';
import {
  duplicateFinding,
  type Finding,
  QualityCounter,
  type QualityFinding,
  qualityFindings,
  type TensorQuality,
} from '../contract/index.ts';
import { AprError } from '../errors.ts';
import { readChecksum } from '../formats/apr/checksum.ts';
import { readChunks } from '../formats/byte-sink.ts';
import { crc32 } from '../formats/crc32.ts';
import type { ModelFile, TensorInfo } from '../formats/model-file.ts';
import { openModel } from '../formats/open-model.ts';
import type { Platform } from '../platform/platform.ts';
import { createTokenizer, type Tokenizer } from '../tokenizer/index.ts';
import { examineModel, prepareModel } from './model.ts';
import { isDecodable, readStretches } from './tensor-values.ts';
import { vocabularyOf } from './tokenizer.ts';

export interface ValidateOptions {
  /** Read all weights and look at their values. Default false. */
  quality?: boolean;
  /** Aborts between stretches of weights. */
  signal?: AbortSignal;
}

export type ValidationFinding = QualityFinding;

export interface QualityReport {
  readonly tensors: readonly TensorQuality[];
  /** Tensors whose values were not looked at, because there is no decoder for their type; type by name. */
  readonly not_decoded: Readonly<Record<string, string>>;
}

export interface Validation {
  /** The source as it was given. */
  readonly model: string;
  readonly format: ModelFile['format'];
  readonly architecture: string | undefined;
  readonly tensors: number;
  /** No finding is an error: it would run. */
  readonly valid: boolean;
  readonly findings: readonly ValidationFinding[];
  readonly quality?: QualityReport;
}

/** @throws AprError NOT_FOUND, BAD_FORMAT, UNSUPPORTED, IO for a file that cannot be read; ABORTED */
export async function validateFile(
  platform: Pick<Platform, 'openSource'>,
  source: string,
  options: ValidateOptions = {},
): Promise<Validation> {
  const bytes = await platform.openSource(source);
  try {
    const file = await openModel(bytes);
    const findings: ValidationFinding[] = await contractFindings(file);
    const quality = options.quality === true ? await readQuality(file, findings, options.signal) : undefined;
    const architecture = file.metadata.value('general.architecture');
    return {
      model: source,
      format: file.format,
      architecture: typeof architecture === 'string' ? architecture : undefined,
      tensors: file.tensors.size,
      valid: findings.every(({ severity }) => severity !== 'error'),
      findings,
      ...(quality === undefined ? {} : { quality }),
    };
  } finally {
    await bytes.close();
  }
}

/** Does what loading does; a stage that fails is a finding, and the others still run. */
async function contractFindings(file: ModelFile): Promise<ValidationFinding[]> {
  const findings: ValidationFinding[] = [];
  const add = (finding: Finding): void => void findings.push({ severity: 'error', ...finding });
  const stage = async <T>(rule: string, run: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof AprError) || error.code === 'IO') throw error;
      add(findingOf(rule, file.source.name, error));
      return undefined;
    }
  };
  const tokenizer = await stage<Tokenizer>('TOKENIZER', () => createTokenizer(file.metadata));
  const vocabulary = tokenizer && vocabularyOf(tokenizer);
  const examined = await stage('ARCHITECTURE', () => examineModel(file, vocabulary, WASM_TYPES));
  for (const finding of examined?.findings ?? []) add(finding);
  if (tokenizer === undefined) return findings;
  // Only a model that has passed so far can be set up.
  if (findings.length === 0) await stage('MODEL-SETUP', () => prepareModel(file, tokenizer, WASM_TYPES));
  await stage('CHAT-TEMPLATE', () => {
    createChatTemplate(file.metadata, tokenizer)?.render([{ role: 'user', content: 'Hello' }]);
  });
  return findings;
}

function findingOf(rule: string, sourceName: string, error: AprError): Finding {
  const { details } = error;
  const text = (key: string): string | undefined => (details[key] === undefined ? undefined : String(details[key]));
  const message = error.message.startsWith(`${sourceName}: `)
    ? error.message.slice(sourceName.length + 2)
    : error.message;
  const [key, tensor] = [text('key'), text('tensor')];
  return {
    rule: text('rule') ?? rule,
    ...(key === undefined ? {} : { key }),
    ...(tensor === undefined ? {} : { tensor }),
    found: text('found') ?? message,
    expected: text('expected') ?? text('supported') ?? 'what the message says',
    message,
    obstacle: 'setting the model up fails with it',
  };
}

async function readQuality(
  file: ModelFile,
  findings: ValidationFinding[],
  signal: AbortSignal | undefined,
): Promise<QualityReport> {
  const tensors: TensorQuality[] = [];
  const notDecoded: Record<string, string> = {};
  /** First matrix with that type, shape and checksum. */
  const seen = new Map<string, TensorInfo>();
  for (const tensor of file.tensors.values()) {
    const { name, type, shape, byteLength } = tensor;
    if (byteLength === 0) continue;
    const counter = isDecodable(tensor) ? new QualityCounter({ name, type: type.name, shape }) : undefined;
    const checksum = await readTensor(file, tensor, counter, signal);
    if (counter === undefined) notDecoded[name] = type.name;
    else {
      const quality = counter.result();
      tensors.push(quality);
      findings.push(...qualityFindings(quality));
    }
    if (shape.length < 2) continue;
    const key = `${type.name} ${shape.join('×')} ${checksum}`;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, tensor);
    else if (await sameBytes(file, first, tensor)) findings.push(duplicateFinding(first.name, name));
  }
  if (file.format === 'apr') {
    const { stored, computed } = await readChecksum(file.source);
    if (stored !== computed) {
      const hex = (value: number): string => `0x${value.toString(16).padStart(8, '0')}`;
      const [found, expected] = [hex(stored), hex(computed)];
      const message = `the file's CRC-32 is ${found}, expected ${expected}: its data have changed since they were written`;
      findings.push({ severity: 'error', rule: 'APR-CHECKSUM', found, expected, message, obstacle: null });
    }
  }
  return { tensors, not_decoded: notDecoded };
}

/** Feeds the tensor to the counter, some blocks at a time; returns the CRC-32 of its bytes. */
async function readTensor(
  file: ModelFile,
  tensor: TensorInfo,
  counter: QualityCounter | undefined,
  signal: AbortSignal | undefined,
): Promise<number> {
  let checksum = 0;
  for await (const { bytes, decode } of readStretches(file, tensor, signal)) {
    checksum = crc32(bytes, checksum);
    const values = decode();
    if (values !== undefined) counter?.add(values);
  }
  return checksum;
}

async function sameBytes({ source }: ModelFile, a: TensorInfo, b: TensorInfo): Promise<boolean> {
  let at = 0;
  for await (const chunk of readChunks(source, a.offset, a.byteLength)) {
    const other = await source.read(b.offset + at, chunk.length);
    if (chunk.some((byte, i) => byte !== other[i])) return false;
    at += chunk.length;
  }
  return true;
}
