/** `apr chat [SOURCE]` */

import { AprError } from '../../src/errors.ts';
import type { Engine, EngineOptions } from '../../src/index.ts';
import { parseCommand, runCommand } from '../chat/commands.ts';
import { PipeReader } from '../chat/pipe-reader.ts';
import { ChatSession, type ChatSettings } from '../chat/session.ts';
import { type MessageReader, TerminalReader } from '../chat/terminal-reader.ts';
import type { Environment } from '../environment.ts';
import type { OptionValues } from '../options.ts';
import { describeEngine, showLoading } from '../render/diagnostics.ts';
import type { OutputForm } from '../render/error.ts';
import { visibleLine } from '../render/terminal.ts';
import { resolveSource, withAdvice } from '../source.ts';
import { type CHAT_OPTIONS, CHAT_SETTINGS } from './chat-options.ts';

type ChatValues = OptionValues<typeof CHAT_OPTIONS>;

const DEFAULT_SOURCE = 'demo';

/**
 * A conversation until the input ends or `/exit`.
 * @returns exit status: that of the first turn that failed, 0 when none did
 * @throws AprError for what goes wrong before the first turn
 */
export async function chat(
  positionals: readonly string[],
  values: ChatValues,
  form: OutputForm,
  environment: Environment,
): Promise<number> {
  const [source = DEFAULT_SOURCE, ...surplus] = positionals;
  if (surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected at most a SOURCE: apr chat [SOURCE]; messages are typed, or come through a pipe`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 1 });
  }
  if (values.quiet && values.verbose) {
    throw new AprError('USAGE', '--quiet and --verbose exclude each other; give one of them');
  }
  const engine = await load(source, values, environment);
  try {
    if (!engine.info.hasChatTemplate) {
      const message = `${source}: the model has no chat template, so there is no conversation with it; use apr run --raw`;
      throw new AprError('TEMPLATE', message);
    }
    return await converse(engine, values, form, environment);
  } finally {
    await engine.dispose();
  }
}

async function load(source: string, values: ChatValues, { stderr, loadCreateEngine }: Environment): Promise<Engine> {
  const options: EngineOptions = { modelName: source };
  if (values.backend !== undefined) options.backend = values.backend;
  if (values.threads !== undefined) options.threads = values.threads;
  if (values['context-length'] !== undefined) options.contextLength = values['context-length'];
  const path = await resolveSource(source, values, { stderr });
  const loading = !values.quiet && stderr.isTTY === true ? showLoading(stderr, source) : undefined;
  try {
    const createEngine = await loadCreateEngine();
    return await createEngine(path, { ...options, ...(loading === undefined ? {} : { onProgress: loading.update }) });
  } catch (error) {
    throw withAdvice(error, source);
  } finally {
    loading?.clear();
  }
}

async function converse(
  engine: Engine,
  values: ChatValues,
  form: OutputForm,
  environment: Environment,
): Promise<number> {
  const { stdin, stdout, stderr } = environment;
  const interactive = stdin.isTTY === true && (stderr.isTTY === true || stdout.isTTY === true);
  const settings: ChatSettings = Object.fromEntries(
    Object.entries(values).filter(([name]) => Object.hasOwn(CHAT_SETTINGS, name)),
  );
  const session = new ChatSession(engine, values.system, settings, values.stop ?? [], {
    stdout,
    stderr,
    form,
    talkative: !values.quiet,
    verbose: values.verbose === true,
  });
  if (values.verbose) session.say(describeEngine(engine.info));
  let leaving = false;
  let interrupts = 0;
  const onInterrupt = (again: boolean): void => {
    leaving ||= again;
    if (session.answering) session.interrupt();
    else if (interactive && !again) stderr.write('\n(Ctrl-C once more leaves; so do /exit and Ctrl-D)\n');
    if (again && !session.answering) reader.close();
  };
  const reader: MessageReader = interactive
    ? new TerminalReader({
        input: stdin as unknown as NodeJS.ReadableStream,
        output: stderr.isTTY === true ? stderr : stdout,
        onInterrupt,
      })
    : new PipeReader(stdin);
  const giveBack = environment.takeInterrupts?.(() => {
    if (reader instanceof TerminalReader) return reader.interrupt();
    // Nobody is there to leave in peace: the first ends the answer, the second all of it.
    if (session.answering && interrupts++ === 0) session.interrupt();
    else environment.interrupted?.();
  });
  if (interactive && !values.quiet) {
    stderr.write(`${visibleLine(engine.info.name)}. /help lists the commands, Ctrl-D leaves.\n\n`);
  }
  try {
    while (!leaving) {
      const entry = await reader.next();
      if (entry === undefined) break;
      interrupts = 0;
      const command = entry.plain ? parseCommand(entry.text) : undefined;
      if (command !== undefined) {
        try {
          leaving ||= await runCommand(session, command.name, command.argument);
        } catch (error) {
          // A slip at a terminal is mended there; a script that holds one has failed.
          session.fail(error, !interactive);
        }
      } else if (entry.text.trim() !== '') {
        await session.ask(entry.plain ? entry.text.replace(/^\/\//, '/') : entry.text);
        if (interactive) stderr.write('\n');
      }
    }
  } finally {
    giveBack?.();
    reader.close();
  }
  return session.status;
}
