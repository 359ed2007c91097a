/** Names for models that many people want, as `apr pull` and `apr run` take them. */

/** Name to repository. Each has GGUF files of an architecture that apr runs. */
const REPOSITORIES: Readonly<Record<string, string>> = {
  'gemma3-1b': 'ggml-org/gemma-3-1b-it-GGUF',
  'gemma3-4b': 'ggml-org/gemma-3-4b-it-GGUF',
  'llama3.1-8b': 'bartowski/Meta-Llama-3.1-8B-Instruct-GGUF',
  'llama3.2-1b': 'bartowski/Llama-3.2-1B-Instruct-GGUF',
  'llama3.2-3b': 'bartowski/Llama-3.2-3B-Instruct-GGUF',
  'phi3-mini': 'microsoft/Phi-3-mini-4k-instruct-gguf',
  'qwen2.5-0.5b': 'Qwen/Qwen2.5-0.5B-Instruct-GGUF',
  'qwen2.5-1.5b': 'Qwen/Qwen2.5-1.5B-Instruct-GGUF',
  'qwen2.5-3b': 'Qwen/Qwen2.5-3B-Instruct-GGUF',
  'qwen2.5-7b': 'Qwen/Qwen2.5-7B-Instruct-GGUF',
  'qwen2.5-coder-1.5b': 'Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF',
  'qwen2.5-coder-7b': 'Qwen/Qwen2.5-Coder-7B-Instruct-GGUF',
  'qwen3-0.6b': 'Qwen/Qwen3-0.6B-GGUF',
  'qwen3-1.7b': 'Qwen/Qwen3-1.7B-GGUF',
  'qwen3-4b': 'Qwen/Qwen3-4B-GGUF',
  'qwen3-8b': 'Qwen/Qwen3-8B-GGUF',
  'qwen3-30b-a3b': 'Qwen/Qwen3-30B-A3B-GGUF',
  'qwen3-coder-30b': 'unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF',
  'smollm2-1.7b': 'HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF',
  'smollm3-3b': 'ggml-org/SmolLM3-3B-GGUF',
  tinyllama: 'TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF',
};

export const SHORT_NAMES: readonly string[] = Object.keys(REPOSITORIES);

/** The repository behind a short name, in any case of letters; a quantisation may follow: `qwen3-4b:Q8_0`. */
export function shortName(text: string): string | undefined {
  const [, name = '', quantisation = ''] = /^([^:]*)(:[\w.-]+)?$/.exec(text) ?? [];
  const key = name.toLowerCase();
  return Object.hasOwn(REPOSITORIES, key) ? `hf://${REPOSITORIES[key]}${quantisation}` : undefined;
}
