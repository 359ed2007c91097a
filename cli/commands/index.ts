/** The commands: a new one is a line here, and a file beside it that is imported when it runs. */

import type { Environment } from '../environment.ts';
import { type OptionTable, type OptionValues, readValues, type ScannedArguments } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { BENCH_OPTIONS } from './bench-options.ts';
import { CHAT_OPTIONS } from './chat-options.ts';
import { COMPLETIONS_OPTIONS } from './completions-options.ts';
import { CONVERT_OPTIONS } from './convert-options.ts';
import { DIFF_OPTIONS } from './diff-options.ts';
import { EVAL_OPTIONS } from './eval-options.ts';
import { HEX_OPTIONS } from './hex-options.ts';
import { INSPECT_OPTIONS } from './inspect-options.ts';
import { LIST_OPTIONS } from './list-options.ts';
import { PROFILE_OPTIONS } from './profile-options.ts';
import { PULL_OPTIONS } from './pull-options.ts';
import { RM_OPTIONS } from './rm-options.ts';
import { RUN_OPTIONS } from './run-options.ts';
import { TENSORS_OPTIONS } from './tensors-options.ts';
import { TOKENIZE_OPTIONS } from './tokenize-options.ts';
import { TRACE_OPTIONS } from './trace-options.ts';
import { VALIDATE_OPTIONS } from './validate-options.ts';

export interface Command {
  readonly name: string;
  /** One line. */
  readonly summary: string;
  /** Behind `apr`. */
  readonly usage: string;
  readonly options: OptionTable;
  /** What the first argument must be one of, where it is no model. */
  readonly words?: readonly string[];
  /** Exit status that only this command has, as the help says it. */
  readonly status?: string;
  /** What it does, then how it is written. */
  readonly examples: readonly (readonly [string, string])[];
  /** Returns the exit status; a failure is thrown. */
  run(scan: ScannedArguments, form: OutputForm, environment: Environment): Promise<number>;
}

type Action<T extends OptionTable> = (
  positionals: readonly string[],
  values: OptionValues<T>,
  form: OutputForm,
  environment: Environment,
) => Promise<void> | Promise<number>;

interface Definition<T extends OptionTable> extends Omit<Command, 'run'> {
  readonly options: T;
  load(): Promise<Action<T>>;
}

function define<T extends OptionTable>({ load, ...rest }: Definition<T>): Command {
  return {
    ...rest,
    run: async ({ positionals, occurrences }, form, environment) => {
      const values = readValues(
        occurrences.filter(({ name }) => Object.hasOwn(rest.options, name)),
        rest.options,
      );
      const action = await load();
      return (await action(positionals, values, form, environment)) ?? 0;
    },
  };
}

export const COMMANDS: readonly Command[] = [
  define({
    name: 'run',
    summary: 'Answer a prompt with a model',
    usage: 'run SOURCE [PROMPT] [options]',
    options: RUN_OPTIONS,
    status: '1 a line of a batch failed',
    examples: [
      ['The tiny model that comes with apr', 'apr run demo "What is 2+2?"'],
      ['Your own model, four threads, a longer answer', 'apr run qwen3-8b-q4_k_m.gguf -t 4 -n 500 "Explain RoPE."'],
      [
        'A prompt from a file, or through a pipe',
        'apr run model.gguf -i question.txt; git diff | apr run model.gguf --system "Review this."',
      ],
      ['For programs: one document, or an event a token', 'apr run demo Hello --json; apr run demo Hello --stream'],
      [
        'No chat template: the model goes on with the text',
        'apr run model.gguf --raw "Once upon a time" --temperature 0.8 --seed 7',
      ],
      ['Many prompts, eight at a time: {"prompt": …} a line', 'apr run model.gguf --batch-jsonl prompts.jsonl'],
    ],
    load: async () => (await import('./run.ts')).run,
  }),
  define({
    name: 'chat',
    summary: 'Talk with a model at the terminal, or through a pipe',
    usage: 'chat [SOURCE] [options]',
    options: CHAT_OPTIONS,
    examples: [
      ['A conversation; /help lists what it can do', 'apr chat model.gguf --system "Answer in one sentence."'],
      ['A message a line, an answer a line as JSON', 'apr chat model.gguf --json < messages.txt'],
    ],
    load: async () => (await import('./chat.ts')).chat,
  }),
  define({
    name: 'pull',
    summary: 'Fetch a model from the Hugging Face hub, or any address',
    usage: 'pull REF [options]',
    options: PULL_OPTIONS,
    examples: [
      [
        'By a short name, a repository, with a quantisation',
        'apr pull qwen3-4b; apr pull hf://Qwen/Qwen3-8B-GGUF:Q5_K_M',
      ],
      [
        'A file at a revision; any other address',
        'apr pull hf://org/repo/model.gguf@v1.0; apr pull https://example.com/model.gguf',
      ],
      ['What can be pulled can be run', 'apr run hf://Qwen/Qwen3-0.6B-GGUF "Hello"'],
    ],
    load: async () => (await import('./pull.ts')).pull,
  }),
  define({
    name: 'list',
    summary: 'List the models that were fetched',
    usage: 'list [options]',
    options: LIST_OPTIONS,
    examples: [['Names, sizes, and what was never completed', 'apr list']],
    load: async () => (await import('./list.ts')).list,
  }),
  define({
    name: 'rm',
    summary: 'Remove models that were fetched',
    usage: 'rm REF... [options]',
    options: RM_OPTIONS,
    examples: [
      ['A model, by the name that "apr list" gives it', 'apr rm hf://Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf'],
      ['All that is left of interrupted downloads', 'apr rm --unfinished'],
    ],
    load: async () => (await import('./rm.ts')).rm,
  }),
  define({
    name: 'inspect',
    summary: 'Say what a model file is, and whether it fits this machine',
    usage: 'inspect SOURCE [options]',
    options: INSPECT_OPTIONS,
    examples: [
      ['Architecture, quantisation, context, special tokens', 'apr inspect model.gguf'],
      ['Does it fit this machine with a context of 32,768?', 'apr inspect model.gguf -c 32768'],
      ['Everything, for programs', 'apr inspect model.gguf --metadata --json'],
    ],
    load: async () => (await import('./inspect.ts')).inspect,
  }),
  define({
    name: 'tensors',
    summary: 'List the tensors of a model file, with statistics',
    usage: 'tensors SOURCE [options]',
    options: TENSORS_OPTIONS,
    examples: [
      ['Name, type, shape, size and place of each', 'apr tensors model.gguf'],
      ['What the first layer holds', 'apr tensors model.gguf --filter "blk.0.*" --stats'],
    ],
    load: async () => (await import('./tensors.ts')).tensors,
  }),
  define({
    name: 'hex',
    summary: 'Show blocks of a tensor: bytes, scales, quants',
    usage: 'hex SOURCE TENSOR [options]',
    options: HEX_OPTIONS,
    examples: [
      ['The first block of a matrix, taken apart', 'apr hex model.gguf blk.0.attn_q.weight'],
      ['Two blocks of row 100, for programs', 'apr hex model.gguf output.weight --row 100 -n 2 --json'],
    ],
    load: async () => (await import('./hex.ts')).hex,
  }),
  define({
    name: 'diff',
    summary: 'Compare two model files: metadata, tensors, cosine',
    usage: 'diff A B [options]',
    options: DIFF_OPTIONS,
    status: '1 they differ',
    examples: [
      ['What a conversion changed', 'apr diff model.gguf model.apr'],
      ['Which tensors a quantisation hurt most', 'apr diff model-f16.gguf model-q4_k_m.gguf --threshold 0.995'],
    ],
    load: async () => (await import('./diff.ts')).diff,
  }),
  define({
    name: 'convert',
    summary: 'Write a model in another format, GGUF or .apr',
    usage: 'convert SOURCE -o FILE [options]',
    options: CONVERT_OPTIONS,
    examples: [
      ['One file with tokenizer and chat template inside', 'apr convert model.gguf -o model.apr'],
      ['And back, byte for byte', 'apr convert model.apr -o again.gguf'],
    ],
    load: async () => (await import('./convert.ts')).convert,
  }),
  define({
    name: 'validate',
    summary: 'Check a model file as running it would; list every finding',
    usage: 'validate SOURCE [options]',
    options: VALIDATE_OPTIONS,
    examples: [
      ['Would it run?', 'apr validate model.gguf'],
      ['Read all weights too: NaN, zeros, dead rows, duplicates', 'apr validate model.gguf --quality --json'],
    ],
    load: async () => (await import('./validate.ts')).validate,
  }),
  define({
    name: 'eval',
    summary: 'Perplexity of a text, as llama-perplexity computes it',
    usage: 'eval SOURCE --text FILE [options]',
    options: EVAL_OPTIONS,
    examples: [
      ['How well does the model predict this text?', 'apr eval model.gguf --text wiki.txt'],
      ['Windows of 2,048 tokens, for programs', 'apr eval model.gguf --text wiki.txt -c 2048 --json'],
    ],
    load: async () => (await import('./eval.ts')).evaluate,
  }),
  define({
    name: 'trace',
    summary: 'What every layer computes, and where two runs part',
    usage: 'trace SOURCE [PROMPT] [options]',
    options: TRACE_OPTIONS,
    examples: [
      ['Every layer in figures, and a verdict', 'apr trace model.gguf -p "What is 2+2?"'],
      [
        'Where does a requantised file go wrong?',
        'apr trace q4_k_m.gguf --reference f16.gguf --max-l2 0.3 -p "What is 2+2?"',
      ],
      ['Are the kernels right?', 'apr trace model.gguf --reference backend:reference --tokens all -p "What is 2+2?"'],
      ['Raw activations for numpy', 'apr trace model.gguf --save-tensors out --stages attn_norm,output -p Hello'],
    ],
    load: async () => (await import('./trace.ts')).trace,
  }),
  define({
    name: 'profile',
    summary: 'Where the time goes: operations, tensor types, threads',
    usage: 'profile SOURCE [PROMPT] [options]',
    options: PROFILE_OPTIONS,
    examples: [
      ['Time and bandwidth of every operation', 'apr profile model.gguf'],
      ['A flame graph, and a page to look at', 'apr profile model.gguf --flamegraph stacks.txt --html profile.html'],
    ],
    load: async () => (await import('./profile.ts')).profile,
  }),
  define({
    name: 'bench',
    summary: 'Measure how fast a model runs here',
    usage: 'bench SOURCE [options]',
    options: BENCH_OPTIONS,
    examples: [
      ['Prompts of two lengths, with one thread and with four', 'apr bench model.gguf -p 128,512 -t 1,4'],
      ['Beside llama.cpp, where node-llama-cpp is installed', 'apr bench model.gguf --compare node-llama-cpp'],
    ],
    load: async () => (await import('./bench.ts')).bench,
  }),
  define({
    name: 'tokenize',
    summary: 'Text to token ids, and back',
    usage: 'tokenize encode SOURCE [PROMPT | -p TEXT | -i PATH] | tokenize decode SOURCE ID...',
    words: ['encode', 'decode'],
    options: TOKENIZE_OPTIONS,
    examples: [
      [
        'Ids of a text as a user writes it: nothing added, nothing in it special',
        'apr tokenize encode demo -p "Hello"',
      ],
      ['Ids of a rendered chat', "apr tokenize encode demo --special -p '<|im_start|>user'"],
      ['Each token with its text', 'apr tokenize encode demo -p "Hello" --pieces'],
      ['And the text again', 'apr tokenize decode demo 39 68 75 75 78'],
    ],
    load: async () => (await import('./tokenize.ts')).tokenize,
  }),
  define({
    name: 'completions',
    summary: 'Print completions for bash, zsh or fish',
    usage: 'completions bash|zsh|fish',
    words: ['bash', 'zsh', 'fish'],
    options: COMPLETIONS_OPTIONS,
    examples: [
      ['bash: a line for ~/.bashrc', 'source <(apr completions bash)'],
      ['zsh: into a folder of $fpath', 'apr completions zsh > ~/.zfunc/_apr'],
      ['fish', 'apr completions fish > ~/.config/fish/completions/apr.fish'],
    ],
    load: async () => (await import('./completions.ts')).completions(COMMANDS),
  }),
];
