/** Templates for files that have none. */

import type { Tokenizer } from '../tokenizer/index.ts';

const CHATML = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const LLAMA3 =
  '{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n' +
  '{{ message.content | trim }}<|eot_id|>{% endfor %}' +
  "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";

// A system message goes before the text of the first turn, as Gemma has no such role.
const GEMMA =
  "{{ bos_token }}{% if messages[0].role == 'system' %}{% set system = messages[0].content | trim + '\n\n' %}" +
  "{% set turns = messages[1:] %}{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}" +
  "{% for message in turns %}<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n" +
  "{{ system if loop.first else '' }}{{ message.content | trim }}<end_of_turn>\n{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}";

const PHI3 =
  "{% for message in messages %}{{ '<|' + message.role + '|>\n' }}{{ message.content }}{{ '<|end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}";

/** By architecture name in small letters without separators. */
const BY_ARCHITECTURE: Readonly<Record<string, string>> = {
  qwen2: CHATML,
  qwen2moe: CHATML,
  qwen3: CHATML,
  qwen3moe: CHATML,
};

/**
 * Template of that architecture, or of the format that the vocabulary shows: its answers end with the token that ends
 * a turn of the format. That a turn's tokens are merely there says nothing, base models have them too.
 */
export function builtInTemplate(architecture: string, tokenizer: Tokenizer): string | undefined {
  const name = architecture.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  if (Object.hasOwn(BY_ARCHITECTURE, name)) return BY_ARCHITECTURE[name];
  const declaresEnd = (text: string): boolean => {
    const id = tokenizer.findSpecial(text);
    return id !== undefined && (id === tokenizer.eosId || id === tokenizer.eotId);
  };
  const has = (text: string): boolean => tokenizer.findSpecial(text) !== undefined;
  if (declaresEnd('<|eot_id|>') && has('<|start_header_id|>') && has('<|end_header_id|>')) return LLAMA3;
  if (declaresEnd('<|im_end|>') && has('<|im_start|>')) return CHATML;
  if (declaresEnd('<end_of_turn>') && has('<start_of_turn>')) return GEMMA;
  // Every Phi-3 is a chat model, and none declares the end of its turns. Phi-4 has another format, and no <s>.
  if (name === 'phi3' && ['<s>', '<|user|>', '<|assistant|>', '<|end|>'].every(has)) return PHI3;
  return undefined;
}
