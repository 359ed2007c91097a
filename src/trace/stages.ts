/** What people call the steps of a forward pass, and which activations (as src/models names them) belong to which. */

export interface Stage {
  /** As options and JSON spell it. */
  readonly name: string;
  /** As sentences spell it. */
  readonly label: string;
  /**
   * Names of its activations, without layer. Alternatives stand in a list, in the order in which they are computed: the
   * last one that a model has is the stage's result, such as the product with its bias added.
   */
  readonly parts: readonly (readonly string[])[];
}

const withBias = (...names: string[]): string[][] => names.map((name) => [name, `${name}_bias`]);

/** Steps of a block, in the order in which they are computed. */
export const BLOCK_STAGES: readonly Stage[] = [
  { name: 'attn_norm', label: 'attention norm', parts: [['attn_norm']] },
  { name: 'qkv', label: 'QKV', parts: withBias('attn_q', 'attn_k', 'attn_v') },
  { name: 'qk_norm', label: 'Q/K norm', parts: [['attn_q_norm'], ['attn_k_norm']] },
  { name: 'rope', label: 'RoPE', parts: [['attn_q_rope'], ['attn_k_rope']] },
  { name: 'attention', label: 'attention', parts: [['attn_kqv']] },
  {
    name: 'attn_out',
    label: 'attention output',
    parts: [['attn_output', 'attn_output_bias', 'attn_post_norm', 'attn_scaled']],
  },
  { name: 'attn_residual', label: 'residual behind attention', parts: [['attn_residual']] },
  { name: 'ffn_norm', label: 'FFN norm', parts: [['ffn_norm']] },
  { name: 'router', label: 'router', parts: [['ffn_gate_inp'], ['ffn_routing']] },
  {
    name: 'gate_up',
    label: 'gate/up',
    parts: [
      ...withBias('ffn_gate', 'ffn_up'),
      ...['ffn_gate_exps', 'ffn_up_exps', 'ffn_gate_shexp', 'ffn_up_shexp', 'ffn_gate_inp_shexp'].map((name) => [name]),
    ],
  },
  { name: 'ffn_inner', label: 'gated activation', parts: [['ffn_swiglu', 'ffn_geglu'], ['ffn_swiglu_shexp']] },
  {
    name: 'ffn_down',
    label: 'down',
    parts: [...withBias('ffn_down'), ['ffn_down_exps'], ['ffn_down_shexp']],
  },
  {
    name: 'ffn_out',
    label: 'FFN output',
    parts: [['ffn_moe_out', 'ffn_out', 'ffn_post_norm', 'ffn_scaled'], ['ffn_shexp_out']],
  },
  { name: 'output', label: 'output of the block', parts: [['ffn_residual']] },
];

/** Steps outside the blocks. */
export const OUTER_STAGES: readonly Stage[] = [
  { name: 'embedding', label: 'embedding', parts: [['embd', 'embd_scaled']] },
  { name: 'final_norm', label: 'final norm', parts: [['output_norm']] },
  { name: 'logits', label: 'logits', parts: [['logits_raw', 'logits_scaled', 'logits']] },
];

export const STAGES: readonly Stage[] = [...OUTER_STAGES, ...BLOCK_STAGES];

const BY_ACTIVATION: ReadonlyMap<string, Stage> = /* @__PURE__ */ new Map(
  STAGES.flatMap((stage) => stage.parts.flat().map((name) => [name, stage] as const)),
);

/** The router's choice: expert ids as int32, then their weights. See `topK` in src/graph/command.ts. */
export const ROUTING = 'ffn_routing';
/** The router's logits, one an expert. */
export const ROUTER_LOGITS = 'ffn_gate_inp';
/** A copy of rows that other activations hold. */
const COPIES: ReadonlySet<string> = /* @__PURE__ */ new Set(['output_rows']);

/** `attn_norm` of `blk.3.attn_norm`. */
export function withoutLayer(name: string): string {
  return name.replace(/^blk\.\d+\./, '');
}

/** Undefined for a name that this version has no stage for; it is then its own. */
export function stageOf(name: string): Stage | undefined {
  return BY_ACTIVATION.get(withoutLayer(name));
}

export function isRouting({ name }: { readonly name: string }): boolean {
  return withoutLayer(name) === ROUTING;
}

export function isCopy(name: string): boolean {
  return COPIES.has(name);
}

/** `layer 2, attention norm`. */
export function placeOf(name: string, layer: number | undefined): string {
  const label = stageOf(name)?.label ?? withoutLayer(name);
  return layer === undefined ? label : `layer ${layer}, ${label}`;
}
