/**
 * Names of tensors: .apr files have those of Hugging Face's checkpoints, the rest of this program those of GGUF. Names
 * that stand in neither table are the same on both sides (such as `rope_freqs.weight`).
 *
 * Experts are stacked, as in GGUF: one tensor `mlp.experts.gate_proj.weight` of [experts, inner, hidden].
 */

const GLOBAL: readonly (readonly [gguf: string, huggingFace: string])[] = [
  ['token_embd', 'model.embed_tokens'],
  ['output_norm', 'model.norm'],
  ['output', 'lm_head'],
];

/** Within `blk.N.` and `model.layers.N.`, before `.weight` or `.bias`. */
const BLOCK: readonly (readonly [gguf: string, huggingFace: string])[] = [
  ['attn_norm', 'input_layernorm'],
  ['attn_q', 'self_attn.q_proj'],
  ['attn_k', 'self_attn.k_proj'],
  ['attn_v', 'self_attn.v_proj'],
  ['attn_output', 'self_attn.o_proj'],
  ['attn_q_norm', 'self_attn.q_norm'],
  ['attn_k_norm', 'self_attn.k_norm'],
  ['ffn_norm', 'post_attention_layernorm'],
  ['ffn_gate', 'mlp.gate_proj'],
  ['ffn_up', 'mlp.up_proj'],
  ['ffn_down', 'mlp.down_proj'],
  ['ffn_gate_inp', 'mlp.gate'],
  ['ffn_gate_exps', 'mlp.experts.gate_proj'],
  ['ffn_up_exps', 'mlp.experts.up_proj'],
  ['ffn_down_exps', 'mlp.experts.down_proj'],
  ['ffn_gate_inp_shexp', 'mlp.shared_expert_gate'],
  ['ffn_gate_shexp', 'mlp.shared_expert.gate_proj'],
  ['ffn_up_shexp', 'mlp.shared_expert.up_proj'],
  ['ffn_down_shexp', 'mlp.shared_expert.down_proj'],
];

const globalToHuggingFace = /* @__PURE__ */ new Map(GLOBAL);
const globalToGguf = /* @__PURE__ */ new Map(GLOBAL.map(([gguf, hf]) => [hf, gguf]));
const blockToHuggingFace = /* @__PURE__ */ new Map(BLOCK);
const blockToGguf = /* @__PURE__ */ new Map(BLOCK.map(([gguf, hf]) => [hf, gguf]));

export function toHuggingFaceName(gguf: string): string {
  const { stem, suffix } = split(gguf);
  const block = /^blk\.(\d+)\.(.+)$/.exec(stem);
  const inner = block === null ? undefined : blockToHuggingFace.get(block[2]!);
  if (inner !== undefined) return `model.layers.${block![1]}.${inner}${suffix}`;
  const outer = globalToHuggingFace.get(stem);
  return outer === undefined ? gguf : outer + suffix;
}

export function toGgufName(huggingFace: string): string {
  const { stem, suffix } = split(huggingFace);
  const block = /^model\.layers\.(\d+)\.(.+)$/.exec(stem);
  const inner = block === null ? undefined : blockToGguf.get(block[2]!);
  if (inner !== undefined) return `blk.${block![1]}.${inner}${suffix}`;
  const outer = globalToGguf.get(stem);
  return outer === undefined ? huggingFace : outer + suffix;
}

/** `.weight` or `.bias` apart; a name with neither has no counterpart. */
function split(name: string): { stem: string; suffix: string } {
  const match = /^(.+)(\.weight|\.bias)$/s.exec(name);
  return match === null ? { stem: '', suffix: '' } : { stem: match[1]!, suffix: match[2]! };
}
