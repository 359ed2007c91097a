/** What a shell has to know about the command table. */

import { BUNDLED_MODELS } from '../../src/platform/node/bundled-models.ts';
import type { Option, OptionTable } from '../options.ts';

/** The part of a command that completions are made from. */
export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: OptionTable;
  readonly words?: readonly string[];
}

export type Shell = 'bash' | 'zsh' | 'fish';
export const SHELLS: readonly Shell[] = ['bash', 'zsh', 'fish'];

/** Endings of model files. */
export const MODEL_ENDINGS = ['gguf', 'apr'] as const;
/** Models that have a name. */
export const MODEL_NAMES: readonly string[] = BUNDLED_MODELS;

/** What may stand behind an option. */
export type ValueKind = 'none' | 'choices' | 'file' | 'folder' | 'other';

const FILE_PLACEHOLDERS: ReadonlySet<string> = /* @__PURE__ */ new Set(['FILE', 'PATH', 'OTHER']);
const FOLDER_PLACEHOLDERS: ReadonlySet<string> = /* @__PURE__ */ new Set(['DIR', 'FOLDER']);

export function valueKind(option: Option): ValueKind {
  switch (option.kind) {
    case 'flag':
      return 'none';
    case 'choice':
      return 'choices';
    case 'text':
      if (FILE_PLACEHOLDERS.has(option.placeholder)) return 'file';
      return FOLDER_PLACEHOLDERS.has(option.placeholder) ? 'folder' : 'other';
    default:
      return 'other';
  }
}

/** `--name`, and `-n` where there is one. */
export function spellings(name: string, { alias }: Option): string[] {
  return alias === undefined ? [`--${name}`] : [`--${name}`, `-${alias}`];
}

/** Text in single quotes, for shells where nothing but the quote itself is special in them. */
export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
