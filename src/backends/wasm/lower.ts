/**
 * Turns a recorded pass into kernel calls over buffers: which kernel, over which items, in which bank, reading and
 * writing what. Addresses come later (compile.ts), so that the memory for them can be counted first.
 */

import type { Activation, Command, InputName, PassRecord, Weight } from '../../graph/command.ts';
import type { RopeParameters } from '../../graph/rope.ts';
import { ITEM_VALUES, type KernelExports, type KernelName } from './kernels.ts';
import { keepOperands, type Share, sharesOf } from './shares.ts';

/** A place in a bank. `fixed` ones are laid out once for the engine, the others for one program. */
export interface Buffer {
  readonly bank: number;
  readonly bytes: number;
  /** Address of a fixed place. */
  readonly fixed?: number;
  /** Steps of first and last use, and the place in the arena. */
  first: number;
  last: number;
  offset: number;
}

export interface KernelCall {
  /** Index of the command that it computes, or part of it. */
  readonly command: number;
  readonly kernel: KernelName | 'transfer';
  readonly bank: number;
  readonly items: number;
  /** Items that a worker takes at least. */
  readonly least: number;
  readonly args: readonly (number | Buffer)[];
  readonly reads: readonly Buffer[];
  readonly writes: readonly Buffer[];
}

/** Where an engine's fixed things lie. */
export interface Placement {
  weight(weight: Weight): { readonly bank: number; readonly pointer: number; readonly type: number };
  input(name: InputName | 'identity', bank: number): number;
  ropeTable(rope: RopeParameters, bank: number): number;
  /** Bank of a layer and the places of its keys and values. */
  cache(layer: number): { readonly k: Buffer; readonly v: Buffer };
  readonly contextLength: number;
  readonly workers: number;
  readonly kernels: KernelExports;
}

/** With this many rows or fewer, attention is split by positions too. */
export const FEW_ROWS = 4;
const SEGMENT = 1024;

export interface Lowered {
  readonly calls: readonly KernelCall[];
  /** How the workers divide each of them. */
  readonly shares: readonly Share[];
  /** Buffers in need of a place, by bank. */
  readonly buffers: readonly Buffer[];
  /** Undefined for a pass without outputs. */
  readonly logits: Buffer | undefined;
  /** Activations kept to the end because an observer wants them. */
  readonly taps: readonly { readonly activation: Activation; readonly buffer: Buffer }[];
}

const bits = /* @__PURE__ */ new DataView(/* @__PURE__ */ new ArrayBuffer(4));
/** A float's bits, as kernels take float parameters. */
function floatBits(value: number): number {
  bits.setFloat32(0, value);
  return bits.getInt32(0);
}

export function lower(
  record: PassRecord,
  placement: Placement,
  wants?: (name: string, layer: number | undefined) => boolean,
): Lowered {
  const lowering = new Lowering(record, placement);
  record.commands.forEach((command, index) => {
    lowering.index = index;
    lowering.command(command);
  });
  return lowering.finish(wants);
}

class Lowering {
  /** Of the command that is being lowered. */
  index = 0;
  readonly #record: PassRecord;
  readonly #placement: Placement;
  readonly #calls: KernelCall[] = [];
  readonly #buffers: Buffer[] = [];
  /** Where an activation was computed, and copies and derived forms of it: key "id", "id@bank", "id/format@bank". */
  readonly #values = new Map<string, Buffer>();

  constructor(record: PassRecord, placement: Placement) {
    this.#record = record;
    this.#placement = placement;
  }

  command(command: Command): void {
    switch (command.op) {
      case 'embed': {
        const { bank, pointer, type } = this.#placement.weight(command.weight);
        const dst = this.#define(command.dst, bank);
        const args = [type, dst, pointer, command.weight.width, this.#placement.input('tokens', bank)];
        return this.#call('embed', bank, command.dst.rows, 1, args, [], [dst]);
      }
      case 'selectRows': {
        const x = this.#home(command.x);
        const dst = this.#define(command.dst, x.bank);
        const args = [dst, x, command.x.width, this.#placement.input('outputRows', x.bank)];
        return this.#call('select_rows', x.bank, command.dst.rows, 1, args, [x], [dst]);
      }
      case 'rmsNorm': {
        const { bank, pointer } = this.#placement.weight(command.weight);
        const x = this.#inBank(command.x, bank);
        const dst = this.#define(command.dst, bank);
        const { width } = command.weight;
        const items = (command.x.rows * command.x.width) / width;
        const args = [dst, x, pointer, width, floatBits(command.eps)];
        return this.#call('rms_norm', bank, items, this.#least(items), args, [x], [dst]);
      }
      case 'mulMat':
        return this.#mulMat(command);
      case 'mulMatId':
        return this.#mulMatId(command);
      case 'topK': {
        const logits = this.#home(command.logits);
        const dst = this.#define(command.dst, logits.bank);
        const args = [dst, logits, command.logits.width, command.slots, command.normalise ? 1 : 0];
        return this.#call('top_k', logits.bank, command.logits.rows, 1, args, [logits], [dst]);
      }
      case 'combine': {
        const x = this.#home(command.x);
        const routing = this.#inBank(command.routing, x.bank);
        const dst = this.#define(command.dst, x.bank);
        const args = [dst, x, routing, command.x.width, command.slots];
        return this.#call('combine', x.bank, command.dst.rows, 1, args, [x, routing], [dst]);
      }
      case 'add': {
        const b = this.#home(command.b);
        const a = this.#inBank(command.a, b.bank);
        const dst = this.#define(command.dst, b.bank);
        const count = command.a.rows * command.a.width;
        const items = Math.ceil(count / SEGMENT);
        return this.#call('add', b.bank, items, this.#least(items), [dst, a, b, count], [a, b], [dst]);
      }
      case 'addBias': {
        const { bank, pointer } = this.#placement.weight(command.bias);
        const x = this.#inBank(command.x, bank);
        const dst = this.#define(command.dst, bank);
        return this.#call('add_bias', bank, command.x.rows, 1, [dst, x, pointer, command.x.width], [x], [dst]);
      }
      case 'rope': {
        const x = this.#home(command.x);
        const dst = this.#define(command.dst, x.bank);
        const { rope, headDim } = command;
        const table = this.#placement.ropeTable(rope, x.bank);
        const pairing = rope.pairing === 'interleaved' ? 0 : 1;
        const args = [dst, x, command.x.width, headDim, rope.dims, pairing, table];
        return this.#call('rope', x.bank, command.x.rows, 1, args, [x], [dst]);
      }
      case 'storeKv':
        return this.#storeKv(command);
      case 'attention':
        return this.#attention(command);
      case 'scale':
      case 'softCap': {
        const x = this.#home(command.x);
        const dst = this.#define(command.dst, x.bank);
        const count = command.x.rows * command.x.width;
        const items = Math.ceil(count / SEGMENT);
        const [kernel, number] =
          command.op === 'scale' ? ['scale' as const, command.factor] : ['soft_cap' as const, command.cap];
        const args = [dst, x, count, floatBits(number)];
        return this.#call(kernel, x.bank, items, this.#least(items), args, [x], [dst]);
      }
      case 'sigmoidGate': {
        const x = this.#home(command.x);
        const gate = this.#inBank(command.gate, x.bank);
        const dst = this.#define(command.dst, x.bank);
        const args = [dst, x, gate, command.x.width];
        return this.#call('sigmoid_gate', x.bank, command.x.rows, 1, args, [x, gate], [dst]);
      }
      case 'swiglu':
      case 'geglu': {
        const gate = this.#home(command.gate);
        const up = this.#inBank(command.up, gate.bank);
        const dst = this.#define(command.dst, gate.bank);
        const count = command.gate.rows * command.gate.width;
        const items = Math.ceil(count / ITEM_VALUES);
        return this.#call(command.op, gate.bank, items, this.#least(items), [dst, gate, up, count], [gate, up], [dst]);
      }
    }
  }

  finish(wants?: (name: string, layer: number | undefined) => boolean): Lowered {
    const end = this.#calls.length;
    const logits = this.#record.logits && this.#home(this.#record.logits);
    if (logits !== undefined) logits.last = end;
    const taps = this.#record.activations
      .filter((activation) => wants?.(activation.name, activation.layer))
      .map((activation) => ({ activation, buffer: this.#home(activation) }));
    for (const { buffer } of taps) buffer.last = end;
    const shares = sharesOf(this.#calls);
    keepOperands(this.#calls, shares);
    return { calls: this.#calls, shares, buffers: this.#buffers, logits, taps };
  }

  #mulMat(command: Command & { op: 'mulMat' }): void {
    const { weight, x } = command;
    const { bank, pointer: start, type } = this.#placement.weight(weight);
    const { kernels } = this.#placement;
    // A handle to some rows of a matrix begins at a whole group: prepareModel has seen to it.
    const pointer = start + (weight.firstRow / kernels.GROUP_ROWS.value) * kernels.group_bytes(type, weight.width);
    const input = this.#quantized(x, bank, type);
    const dst = this.#define(command.dst, bank);
    const groups = this.#groups(weight.rows);
    const list = this.#placement.input('identity', bank);
    const args = [type, dst, weight.rows, pointer, weight.width, weight.rows, input, x.rows, list, x.rows];
    this.#call('mul_mat', bank, groups, this.#least(groups), args, [input], [dst]);
  }

  #mulMatId(command: Command & { op: 'mulMatId' }): void {
    const { weight, x, slots } = command;
    const { bank, pointer, type } = this.#placement.weight(weight);
    const input = this.#quantized(x, bank, type);
    const plan = this.#plan(command.routing, bank, slots, weight.experts);
    const dst = this.#define(command.dst, bank);
    const groups = this.#groups(weight.rows);
    const stride = groups * this.#placement.kernels.group_bytes(type, weight.width);
    const items = Math.min(weight.experts, command.routing.rows * slots) * groups;
    const args = [
      type,
      dst,
      weight.rows,
      pointer,
      stride,
      weight.width,
      weight.rows,
      input,
      x.rows,
      plan,
      command.perSlot ? 1 : 0,
    ];
    this.#call('mul_mat_id', bank, items, Math.min(groups, this.#least(items)), args, [input, plan], [dst]);
  }

  #storeKv(command: Command & { op: 'storeKv' }): void {
    const cache = this.#placement.cache(command.layer);
    const { bank } = cache.k;
    const k = this.#inBank(command.k, bank);
    const v = this.#inBank(command.v, bank);
    const { headCountKv, headDim, headDimV } = command;
    const args = [
      k,
      v,
      cache.k,
      cache.v,
      this.#placement.input('positions', bank),
      this.#placement.input('sequences', bank),
      headCountKv,
      headDim,
      headDimV,
      this.#placement.contextLength,
    ];
    this.#call('store_kv', bank, command.k.rows, 1, args, [k, v], [cache.k, cache.v]);
  }

  #attention(command: Command & { op: 'attention' }): void {
    const { kernels, contextLength } = this.#placement;
    const { headCount, headCountKv, headDim, headDimV, window } = command;
    const cache = this.#placement.cache(command.layer);
    const { bank } = cache.k;
    const q = this.#inBank(command.q, bank);
    const { rows } = command.q;
    const shape = [rows, headCount, headCountKv, headDim, headDimV, contextLength];
    const positions = this.#placement.input('positions', bank);
    const sequences = this.#placement.input('sequences', bank);
    const [scale, cap] = [floatBits(command.scale), floatBits(command.softCap)];
    if (rows > FEW_ROWS) {
      const dst = this.#define(command.dst, bank);
      const items = headCountKv * Math.ceil(rows / kernels.attention_rows(contextLength, headCount / headCountKv));
      const args = [dst, q, cache.k, cache.v, positions, sequences, ...shape, scale, window, cap];
      return this.#call('attention', bank, items, 1, args, [q, cache.k, cache.v], [dst]);
    }
    const partial = this.#buffer(bank, kernels.attention_partial_bytes(rows, headCount, contextLength, headDimV) >>> 0);
    const dst = this.#define(command.dst, bank);
    const items = rows * headCountKv * Math.ceil(contextLength / kernels.ATTENTION_CHUNK.value);
    // In a long context most items lie behind the row's position and do nothing: take more of them at once.
    const least = Math.max(1, items >> 9);
    const scoreArgs = [partial, q, cache.k, positions, sequences, ...shape, window, scale, cap];
    this.#call('attention_scores', bank, items, least, scoreArgs, [q, cache.k], [partial]);
    const valueArgs = [partial, cache.v, positions, sequences, ...shape, window];
    this.#call('attention_values', bank, items, least, valueArgs, [partial, cache.v], [partial]);
    const mergeArgs = [dst, partial, positions, rows, headCount, headCountKv, headDimV, contextLength, window];
    this.#call('attention_merge', bank, rows * headCount, this.#least(rows * headCount), mergeArgs, [partial], [dst]);
  }

  /** The activation in the form in which weights of `type` take it. */
  #quantized(activation: Activation, bank: number, type: number): Buffer {
    const { kernels } = this.#placement;
    const format = kernels.activation_format(type);
    const x = this.#inBank(activation, bank);
    if (format === 0) return x;
    const key = `${activation.id}/${format}@${bank}`;
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const { width, rows } = activation;
    const dst = this.#buffer(bank, kernels.activation_bytes(format, width, rows) >>> 0);
    this.#values.set(key, dst);
    const items = rows * Math.ceil(width / ITEM_VALUES);
    this.#call('quantize', bank, items, this.#least(items), [format, dst, x, width, rows], [x], [dst]);
    return dst;
  }

  /** Rows grouped by the experts that they go to. */
  #plan(routing: Activation, bank: number, slots: number, experts: number): Buffer {
    const key = `${routing.id}/plan@${bank}`;
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const x = this.#inBank(routing, bank);
    const dst = this.#buffer(bank, this.#placement.kernels.plan_bytes(routing.rows, slots, experts) >>> 0);
    this.#values.set(key, dst);
    this.#call('route_plan', bank, 1, 1, [dst, x, routing.rows, slots, experts], [x], [dst]);
    return dst;
  }

  /** The activation in this bank, brought over from where it was computed if need be. */
  #inBank(activation: Activation, bank: number): Buffer {
    const home = this.#home(activation);
    if (home.bank === bank) return home;
    const key = `${activation.id}@${bank}`;
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const dst = this.#buffer(bank, home.bytes);
    this.#values.set(key, dst);
    this.#call('transfer', home.bank, 1, 1, [home, bank, dst, home.bytes], [home], [dst]);
    return dst;
  }

  #home(activation: Activation): Buffer {
    return this.#values.get(`${activation.id}`) as Buffer;
  }

  #define(activation: Activation, bank: number): Buffer {
    const buffer = this.#buffer(bank, activation.width * activation.rows * 4);
    this.#values.set(`${activation.id}`, buffer);
    return buffer;
  }

  #buffer(bank: number, bytes: number): Buffer {
    const buffer = { bank, bytes, first: -1, last: -1, offset: -1 };
    this.#buffers.push(buffer);
    return buffer;
  }

  #call(
    kernel: KernelCall['kernel'],
    bank: number,
    items: number,
    least: number,
    args: readonly (number | Buffer)[],
    reads: readonly Buffer[],
    writes: readonly Buffer[],
  ): void {
    const step = this.#calls.length;
    for (const buffer of [...reads, ...writes]) {
      if (buffer.first === -1) buffer.first = step;
      buffer.last = step;
    }
    this.#calls.push({ command: this.index, kernel, bank, items, least: Math.min(items, least), args, reads, writes });
  }

  #groups(rows: number): number {
    return Math.ceil(rows / this.#placement.kernels.GROUP_ROWS.value);
  }

  /** Small enough that workers finish together, large enough that taking the last items costs nothing. */
  #least(items: number): number {
    return Math.max(1, Math.floor(items / (this.#placement.workers * 32)));
  }
}
