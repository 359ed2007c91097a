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
  readonly kind: 'matrix' | 'vector';
  readonly optional?: boolean;
}

/** Types that a norm or bias may have: it is kept as f32. */
const VECTOR_TYPES: ReadonlySet<string> = /* @__PURE__ */ new Set(['F32', 'F16', 'BF16']);

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
      if (!optional) findings.push(finding('TENSOR-PRESENT', name, 'absent', `shape [${shape.join(', ')}]`));
      continue;
    }
    // A declared but empty head beside a full embedding matrix is a tied head.
    if (name === 'output.weight' && tensor.byteLength === 0) continue;
    if (!sameShape(tensor.shape, shape)) {
      findings.push(finding('F-LAYOUT-CONTRACT-001', name, `shape [${tensor.shape.join(', ')}]`, `shape [${shape.join(', ')}]`));
    }
    const types = kind === 'vector' ? VECTOR_TYPES : supportedTypes;
    if (!types.has(tensor.type.name)) {
      findings.push(finding('TYPE-SUPPORTED', name, `type ${tensor.type.name}`, `one of ${[...types].join(', ')}`));
    }
  }
  // An unknown tensor is a computation that would be left out.
  for (const name of tensors.keys()) {
    if (!known.has(name)) findings.push(finding('TENSOR-KNOWN', name, 'present', 'no tensor of this name in this architecture'));
  }
  return findings;
}

/** Equal but for trailing ones, which say the same. */
function sameShape(found: readonly number[], expected: readonly number[]): boolean {
  const length = Math.max(found.length, expected.length);
  return Array.from({ length }, (_, i) => (found[i] ?? 1) === (expected[i] ?? 1)).every(Boolean);
}

function finding(rule: string, tensor: string, found: string, expected: string): Finding {
  const shown = tensor.length > 80 ? `${tensor.slice(0, 77)}…` : tensor;
  return { rule, tensor, found, expected, message: `tensor ${shown}: found ${found}, expected ${expected}` };
}
