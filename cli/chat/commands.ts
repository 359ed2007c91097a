/** What a line that begins with a slash does. */

import { AprError } from '../../src/errors.ts';
import { CHAT_SETTINGS } from '../commands/chat-options.ts';
import { nearest } from '../nearest.ts';
import { type OptionTable, quote, readValues } from '../options.ts';
import { visible } from '../render/terminal.ts';
import { load, save } from './files.ts';
import type { ChatSession } from './session.ts';

interface SlashCommand {
  readonly usage: string;
  readonly summary: string;
  /** True, or a promise of it, means to leave. */
  run(session: ChatSession, argument: string): unknown;
}

export const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: { usage: '/help', summary: 'Show this list', run: (session) => session.show(helpText()) },
  clear: {
    usage: '/clear',
    summary: 'Forget the conversation; the system message stays',
    run: (session, argument) => {
      refuseArgument('clear', argument);
      session.conversation.clear();
      session.say('(the conversation is forgotten)');
    },
  },
  system: {
    usage: '/system [TEXT]',
    summary: 'Show the system message, or set it; "" removes it',
    run: (session, argument) => {
      const { conversation } = session;
      if (argument === '') {
        session.show(conversation.system === undefined ? '(no system message)' : visible(conversation.system));
        return;
      }
      conversation.system = argument === '""' ? undefined : argument;
      session.say(conversation.system === undefined ? '(no system message any more)' : '(the system message is set)');
    },
  },
  save: {
    usage: '/save [--force] FILE',
    summary: 'Write the conversation to FILE, as JSON',
    run: save,
  },
  load: { usage: '/load FILE', summary: 'Go on with the conversation that FILE holds', run: load },
  regen: {
    usage: '/regen',
    summary: 'Answer the last message anew',
    run: async (session, argument) => {
      refuseArgument('regen', argument);
      await session.regenerate();
    },
  },
  stats: {
    usage: '/stats',
    summary: 'Show how full the context is, and what an answer took',
    run: (session, argument) => {
      refuseArgument('stats', argument);
      session.show(statistics(session));
    },
  },
  set: {
    usage: '/set [NAME VALUE]',
    summary: 'Show the settings, or change one; "default" is a value',
    run: set,
  },
  exit: { usage: '/exit', summary: 'Leave; so does Ctrl-D', run: () => true },
};

const OTHER_NAMES: Readonly<Record<string, string>> = { quit: 'exit', bye: 'exit', '?': 'help' };

/** Name and argument of a command; undefined for a message, such as "/usr/bin is what?". */
export function parseCommand(text: string): { readonly name: string; readonly argument: string } | undefined {
  const match = /^\/([a-z?]+)(?:\s+([\s\S]*))?$/i.exec(text.trimEnd());
  if (match === null) return undefined;
  return { name: match[1]!.toLowerCase(), argument: (match[2] ?? '').trim() };
}

/**
 * Does what the command says; true means to leave.
 * @throws AprError USAGE for a command or value that does not exist, and what the command throws
 */
export async function runCommand(session: ChatSession, name: string, argument: string): Promise<boolean> {
  const known = OTHER_NAMES[name] ?? name;
  if (!Object.hasOwn(SLASH_COMMANDS, known)) {
    const near = nearest(known, Object.keys(SLASH_COMMANDS));
    const advice = near === undefined ? '/help lists the commands' : `did you mean /${near}?`;
    const slashes = 'a message that begins with a slash is written with two';
    throw new AprError('USAGE', `unknown command /${name}; ${advice} (${slashes})`, { found: `/${name}` });
  }
  return (await SLASH_COMMANDS[known]!.run(session, argument)) === true;
}

/** Words that complete what was typed, for the tab key. */
export function completions(line: string): string[] {
  const settings = /^\/set\s+([a-z-]*)$/.exec(line);
  if (settings !== null) {
    return Object.keys(CHAT_SETTINGS)
      .filter((name) => name.startsWith(settings[1]!))
      .map((name) => `/set ${name} `);
  }
  if (!/^\/[a-z]*$/.test(line)) return [];
  return Object.keys(SLASH_COMMANDS)
    .map((name) => `/${name}`)
    .filter((name) => name.startsWith(line));
}

function helpText(): string {
  const lines = Object.values(SLASH_COMMANDS).map(({ usage, summary }) => `  ${usage.padEnd(22)}${summary}`);
  return [
    ...lines,
    '  """                   Begins a message of several lines, and ends it',
    "  \\ at a line's end     Goes on in the next line",
    '  Ctrl-C                Stops the answer; once more leaves',
  ].join('\n');
}

function refuseArgument(name: string, argument: string): void {
  if (argument === '') return;
  throw new AprError('USAGE', `/${name} takes nothing behind it, found ${quote(argument)}`, { found: argument });
}

/** Measured, all of it. */
function statistics({ engine, conversation, last, answers, generatedTokens, computedTokens }: ChatSession): string {
  const { contextLength } = engine.info;
  const turns = conversation.turnCount;
  const lines = [`turns     ${turns} in the context, ${answers} answered`];
  if (last === undefined) return [...lines, 'no answer came to its end yet'].join('\n');
  const prompt = last.prompt_tokens.length;
  const computed = prompt - last.cached_tokens;
  const filled = prompt + last.tokens_generated;
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  const rate = (value: number): string => (value > 0 ? `${value.toFixed(1)} tok/s` : 'not measured');
  return [
    ...lines,
    `context   ${filled} of ${contextLength} tokens (${percent(filled / contextLength)}) after the last answer`,
    `prompt    ${prompt} tokens, ${last.cached_tokens} of them from the KV cache, ${computed} computed ` +
      `(${percent(computed / prompt)})`,
    `answer    ${last.tokens_generated} tokens`,
    `speed     prefill ${rate(last.timings.prefill_tok_per_sec)}, decode ${rate(last.timings.decode_tok_per_sec)}, ` +
      `first token after ${(last.timings.prefill_ms / 1000).toFixed(2)} s`,
    `session   ${computedTokens} tokens of prompts computed, ${generatedTokens} generated`,
  ].join('\n');
}

function set(session: ChatSession, argument: string): void {
  const table: OptionTable = CHAT_SETTINGS;
  if (argument === '') {
    const values: Readonly<Record<string, unknown>> = session.settings;
    const lines = Object.entries(table).map(([name, option]) => {
      const value = values[name];
      const shown = value === undefined ? `${option.default} (default)` : String(value);
      return `  ${name.padEnd(16)}${shown}`;
    });
    session.show(lines.join('\n'));
    return;
  }
  const [name = '', value, ...more] = argument.replace(/^--/, '').split(/[\s=]+/);
  if (!Object.hasOwn(table, name)) {
    const near = nearest(name, Object.keys(table));
    const advice = near === undefined ? `expected one of ${Object.keys(table).join(', ')}` : `did you mean ${near}?`;
    throw new AprError('USAGE', `/set: unknown setting ${quote(name)}; ${advice}`, { found: name });
  }
  if (value === undefined || more.length > 0) {
    throw new AprError('USAGE', `/set ${name} has ${more.length + (value === undefined ? 0 : 1)} values, expected one`);
  }
  const { [name as keyof typeof session.settings]: _, ...others } = session.settings;
  const changed = value === 'default' ? {} : readValues([{ name, spelled: `--${name}`, value }], CHAT_SETTINGS);
  session.settings = { ...others, ...changed };
  session.say(`(${name} is ${value === 'default' ? `${table[name]!.default} again` : value})`);
}
