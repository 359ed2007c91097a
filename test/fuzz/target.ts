/** What a damaged file goes through: everything that running it would do, on one thread and with little memory. */

import { WASM_TYPES } from '../../src/backends/wasm/create.ts';
import type { Engine } from '../../src/engine.ts';
import { createLocalEngine } from '../../src/engines/local.ts';
import { prepareModel } from '../../src/engines/model.ts';
import { AprError } from '../../src/errors.ts';
import { type ByteSource, checkRange } from '../../src/formats/byte-source.ts';
import { openModel } from '../../src/formats/open-model.ts';
import { nodePlatform } from '../../src/platform/node/platform.ts';
import type { KernelBuild, Platform } from '../../src/platform/platform.ts';
import { createTokenizer } from '../../src/tokenizer/index.ts';
import type { Mutant } from './mutate.ts';

export interface Outcome {
  /** `ran`, `ran with warnings`, or the code of an AprError. */
  readonly result: string;
  /** Anything but a typed error, or one that must not come from a file. */
  readonly crash?: string;
  /** Seconds of processor time. */
  readonly seconds: number;
  /** Growth of memory while the header was read and checked, less the file's size. */
  readonly headerBytes: number;
}

/** Codes that a damaged file may end with. */
const EXPECTED: ReadonlySet<string> = new Set([
  'BAD_FORMAT',
  'UNSUPPORTED',
  'CONTRACT',
  'OUT_OF_MEMORY',
  'TEMPLATE',
  'CONTEXT_EXCEEDED',
]);

const CONTEXT_LENGTH = 16;
/** Beside the file's own size: tiny models need little more than that. */
const MEMORY_BYTES = 256 << 20;
const TEXT = 'Hello, wörld <|im_end|> 123';

const modules = new Map<string, Promise<WebAssembly.Module>>();

function platformFor(source: ByteSource): Platform {
  return {
    ...nodePlatform,
    openSource: async () => source,
    availableMemory: () => source.size + MEMORY_BYTES,
    loadKernels: (build: KernelBuild) => {
      const module = modules.get(build) ?? nodePlatform.loadKernels(build);
      modules.set(build, module);
      return module;
    },
  };
}

export function sourceOf(name: string, { head, tail }: Mutant): ByteSource {
  const source: ByteSource = {
    name,
    size: head.length + tail.length,
    // Not opened again: without threads weights come through `read`.
    locator: { kind: 'memory', bytes: head },
    read: async (offset, length) => {
      checkRange(source, offset, length);
      const bytes = new Uint8Array(length);
      bytes.set(head.subarray(offset, offset + length));
      const behind = Math.max(offset, head.length);
      if (behind < offset + length) {
        bytes.set(tail.subarray(behind - head.length, offset + length - head.length), behind - offset);
      }
      return bytes;
    },
    close: async () => {},
  };
  return source;
}

/** @param skipContract as `apr run --skip-contract` */
export async function runOne(name: string, mutant: Mutant, skipContract = false): Promise<Outcome> {
  const source = sourceOf(name, mutant);
  const cpu = process.cpuUsage();
  const before = memory();
  let headerBytes = 0;
  let result = 'ran';
  let crash: string | undefined;
  try {
    try {
      const file = await openModel(source);
      const tokenizer = createTokenizer(file.metadata);
      const ids = tokenizer.encode(TEXT, { special: true, addSpecial: true });
      tokenizer.decode(ids, { special: true });
      await prepareModel(file, tokenizer, WASM_TYPES, { contextLength: CONTEXT_LENGTH, skipContract });
    } finally {
      headerBytes = Math.max(0, memory() - before - source.size);
    }
    const engine = await createLocalEngine(platformFor(source), name, {
      shared: false,
      contextLength: CONTEXT_LENGTH,
      skipContract,
    });
    try {
      const [first = 0] = engine.tokenize(TEXT);
      await engine.forward([first]);
      if (engine.info.warnings.length > 0) {
        result = 'ran with warnings';
        await answer(engine, first);
      }
      if (engine.info.hasChatTemplate) engine.applyChatTemplate([{ role: 'user', content: TEXT }]);
    } finally {
      await engine.dispose();
    }
  } catch (error) {
    result = error instanceof AprError ? error.code : 'untyped';
    const named = error instanceof AprError && (error.message.includes(name) || error.code === 'OUT_OF_MEMORY');
    if (!EXPECTED.has(result) || !named)
      crash = error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
  const { user, system } = process.cpuUsage(cpu);
  const outcome = { result, seconds: (user + system) / 1e6, headerBytes };
  return crash === undefined ? outcome : { ...outcome, crash };
}

/** Two tokens; numbers that are none, after a norm or a rotation that makes no sense, are a typed error. */
async function answer(engine: Engine, first: number): Promise<void> {
  try {
    for await (const event of engine.generate({ prompt: [first], maxTokens: 2, ignoreEos: true })) {
      if (event.event === 'token') engine.detokenize([event.token_id]);
    }
  } catch (error) {
    if (!(error instanceof AprError) || error.code !== 'INFERENCE' || !/logit/.test(error.message)) throw error;
  }
}

function memory(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
