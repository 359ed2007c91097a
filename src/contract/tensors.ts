/** Presence, shape and type of every tensor, in both directions. */

import type { Finding } from './finding.ts';

export interface ContractTensor {
  readonly type: { readonly name: string };
  readonly shape: readonly number[];
  readonly byteLength: number;
}

export interface ExpectedTensor {
  readonly name: string;
  /** ggml order: row length first. */
  readonly shape: readonly number[];
  /** A vector is used as f32, a matrix as the file has it. */
  readonly kind: 'matrix' | 'vector';
  readonly optional?: boolean;
}

/** Name of the rule on tensor types: the one that stands for what is not implemented, rather than for a broken file. */
export const TYPE_RULE = 'TYPE-SUPPORTED';

/** Types that a norm or bias may have: it is kept as f32. */
const VECTOR_TYPES: ReadonlySet<string> = /* @__PURE__ */ new Set(['F32', 'F16', 'BF16']);

/** Tensors with one row for each token. */
const VOCABULARY_ROWS: ReadonlySet<string> = /* @__PURE__ */ new Set(['token_embd.weight', 'output.weight']);

export function tensorFindings(
  tensors: ReadonlyMap<string, ContractTensor>,
  expected: readonly ExpectedTensor[],
  supportedTypes: ReadonlySet<string>,
): Finding[] {
  const findings: Finding[] = [];
  const known = new Set<string>();
  for (const { name, shape, kind, optional } of expected) {
    known.add(name);
    const tensor = tensors.get(name);
    if (tensor === undefined) {
      if (optional) continue;
      const obstacle = 'its values are part of every pass';
      findings.push(finding('OBLIG-APR-WEIGHT-SHAPE-MATCHES-CONFIG', name, 'is missing', shown(shape), obstacle));
      continue;
    }
    if (isTiedHead(name, tensor, tensors)) continue;
    if (!sameShape(tensor.shape, shape)) {
      const rule = shapeRule(name, kind, tensor.shape, shape);
      const obstacle = 'values would be read where there are none, or as others than they are';
      findings.push(finding(rule, name, `has ${shown(tensor.shape)}`, shown(shape), obstacle));
      continue;
    }
    const types = kind === 'vector' ? VECTOR_TYPES : supportedTypes;
    if (!types.has(tensor.type.name)) {
      const allowed = `one of ${[...types].join(', ')}`;
      const obstacle = 'nothing here reads that type';
      findings.push(finding(TYPE_RULE, name, `has type ${tensor.type.name}`, allowed, obstacle));
    }
  }
  // An unknown tensor is a computation that would be left out.
  for (const name of tensors.keys()) {
    if (known.has(name)) continue;
    const reason = 'no such tensor in a model of this architecture; what it is for would be left out';
    findings.push(finding('TENSOR-KNOWN', name, 'is present', reason, null));
  }
  return findings;
}

/** A declared but empty head beside a full embedding matrix says that the embedding is the head. */
function isTiedHead(name: string, tensor: ContractTensor, tensors: ReadonlyMap<string, ContractTensor>): boolean {
  return name === 'output.weight' && tensor.byteLength === 0 && (tensors.get('token_embd.weight')?.byteLength ?? 0) > 0;
}

function shapeRule(
  name: string,
  kind: ExpectedTensor['kind'],
  found: readonly number[],
  expected: readonly number[],
): string {
  if (VOCABULARY_ROWS.has(name) && found[0] === expected[0]) return 'OBLIG-APR-VOCAB-EMBED-CONSISTENT';
  if (name === 'output.weight') return 'F-LAYOUT-CONTRACT-002';
  return kind === 'vector' ? 'F-LAYOUT-CONTRACT-003' : 'F-LAYOUT-CONTRACT-001';
}

/** Equal but for trailing ones, which say the same. */
function sameShape(found: readonly number[], expected: readonly number[]): boolean {
  const length = Math.max(found.length, expected.length);
  return Array.from({ length }, (_, i) => (found[i] ?? 1) === (expected[i] ?? 1)).every(Boolean);
}

function shown(shape: readonly number[]): string {
  return `shape [${shape.join(', ')}]`;
}

function finding(rule: string, tensor: string, found: string, expected: string, obstacle: string | null): Finding {
  const name = tensor.length > 80 ? `${tensor.slice(0, 79)}…` : tensor;
  return { rule, tensor, found, expected, message: `tensor ${name} ${found}, expected ${expected}`, obstacle };
}
