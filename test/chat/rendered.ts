/** Texts of the templates by Python's jinja2 3.1.6 with the settings of the transformers library. */

export interface Rendered {
  readonly template: string;
  readonly conversation: 'question' | 'turns' | 'tools';
  readonly thinking?: true;
  /** The template's own refusal. */
  readonly refused?: true;
  readonly text: string;
}

export const RENDERED: readonly Rendered[] = [
  {
    template: 'qwen25',
    conversation: 'question',
    text: '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n What is 2+2? <|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'qwen25',
    conversation: 'turns',
    text: '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\nHello!<|im_end|>\n<|im_start|>user\nAnd 日本?<|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'qwen25',
    conversation: 'tools',
    text: '<|im_start|>system\nYou are a helpful assistant.\n\n# Tools\n<tools>\n{"type": "function", "function": {"name": "add", "description": "Sums", "parameters": {"type": "object", "required": ["a"]}}}\n</tools>\n{"name": <function-name>}<|im_end|>\n<|im_start|>user\nAdd.<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "é \\"x\\""}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n<|im_start|>assistant\nFour.<|im_end|>\n<|im_start|>user\nThanks<|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'qwen3',
    conversation: 'question',
    text: '<|im_start|>user\n What is 2+2? <|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
  },
  {
    template: 'qwen3',
    conversation: 'question',
    thinking: true,
    text: '<|im_start|>user\n What is 2+2? <|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'qwen3',
    conversation: 'turns',
    text: '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nAnd 日本?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
  },
  {
    template: 'qwen3',
    conversation: 'turns',
    thinking: true,
    text: '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nAnd 日本?<|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'qwen3',
    conversation: 'tools',
    text: '<|im_start|>user\nAdd.<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\nFour.<|im_end|>\n<|im_start|>user\nThanks<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
  },
  {
    template: 'qwen3',
    conversation: 'tools',
    thinking: true,
    text: '<|im_start|>user\nAdd.<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\nFour.<|im_end|>\n<|im_start|>user\nThanks<|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'llama31',
    conversation: 'question',
    text: '<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nWhat is 2+2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
  },
  {
    template: 'llama31',
    conversation: 'turns',
    text: '<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n<think>\nhm\n</think>\n\nHello!<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd 日本?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
  },
  {
    template: 'llama31',
    conversation: 'tools',
    text: '<s><|start_header_id|>system<|end_header_id|>\n\nEnvironment: ipython\n{\n    "type": "function",\n    "function": {\n        "name": "add",\n        "description": "Sums",\n        "parameters": {\n            "type": "object",\n            "required": [\n                "a"\n            ]\n        }\n    }\n}\n\nToday Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAdd.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{"name": "add", "parameters": {"a": 1, "b": "é \\"x\\""}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n"4"<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nFour.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nThanks<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
  },
  { template: 'mistral', conversation: 'question', text: '<s> [INST]  What is 2+2?  [/INST]' },
  {
    template: 'mistral',
    conversation: 'turns',
    text: '<s> [INST] Be brief.\n\nHi [/INST] <think>\nhm\n</think>\n\nHello!</s> [INST] And 日本? [/INST]',
  },
  {
    template: 'mistral',
    conversation: 'tools',
    refused: true,
    text: 'Roles must alternate user/assistant/user/assistant/...',
  },
  { template: 'phi3', conversation: 'question', text: '<|user|>\n What is 2+2? <|end|>\n<|assistant|>\n' },
  {
    template: 'phi3',
    conversation: 'turns',
    text: '<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\n<think>\nhm\n</think>\n\nHello!<|end|>\n<|user|>\nAnd 日本?<|end|>\n<|assistant|>\n',
  },
  {
    template: 'phi3',
    conversation: 'tools',
    text: '<|user|>\nAdd.<|end|>\n<|assistant|>\n<|end|>\n<|assistant|>\nFour.<|end|>\n<|user|>\nThanks<|end|>\n<|assistant|>\n',
  },
  {
    template: 'gemma',
    conversation: 'question',
    text: '<s><start_of_turn>user\nWhat is 2+2?<end_of_turn>\n<start_of_turn>model\n',
  },
  {
    template: 'gemma',
    conversation: 'turns',
    text: '<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n<think>\nhm\n</think>\n\nHello!<end_of_turn>\n<start_of_turn>user\nAnd 日本?<end_of_turn>\n<start_of_turn>model\n',
  },
  {
    template: 'gemma',
    conversation: 'tools',
    refused: true,
    text: 'Conversation roles must alternate user/assistant/user/assistant/...',
  },
  {
    template: 'smollm2',
    conversation: 'question',
    text: '<|im_start|>system\nYou are a helpful AI assistant named SmolLM<|im_end|>\n<|im_start|>user\n What is 2+2? <|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'smollm2',
    conversation: 'turns',
    text: '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\nHello!<|im_end|>\n<|im_start|>user\nAnd 日本?<|im_end|>\n<|im_start|>assistant\n',
  },
  {
    template: 'smollm2',
    conversation: 'tools',
    text: '<|im_start|>system\nYou are a helpful AI assistant named SmolLM<|im_end|>\n<|im_start|>user\nAdd.<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>tool\n4<|im_end|>\n<|im_start|>assistant\nFour.<|im_end|>\n<|im_start|>user\nThanks<|im_end|>\n<|im_start|>assistant\n',
  },
  { template: 'tinyllama', conversation: 'question', text: '<|user|>\n What is 2+2? </s>\n<|assistant|>\n' },
  {
    template: 'tinyllama',
    conversation: 'turns',
    text: '<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\n<think>\nhm\n</think>\n\nHello!</s>\n<|user|>\nAnd 日本?</s>\n<|assistant|>\n',
  },
  {
    template: 'tinyllama',
    conversation: 'tools',
    text: '<|user|>\nAdd.</s>\n<|assistant|>\n</s>\n<|assistant|>\nFour.</s>\n<|user|>\nThanks</s>\n<|assistant|>\n',
  },
];
