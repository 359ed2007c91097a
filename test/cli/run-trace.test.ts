/** `apr run --trace…` and `--profile` with the demo model, in this process. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runCli } from '../../cli/cli.ts';
import { createEngine, type FinalEvent, type TraceEvent } from '../../src/index.ts';
import { type FakeOptions, fake, Output } from './fake-engine.ts';

interface TraceDocument {
  readonly version: string;
  readonly timestamp: string;
  readonly model: Record<string, string | number>;
  readonly run: Record<string, string | number>;
  readonly totals: Record<string, number>;
  readonly events: readonly TraceEvent[];
  readonly error_count: number;
  readonly warning_count: number;
}

const folder = mkdtempSync(join(tmpdir(), 'apr-'));
const PROMPT = ['run', 'demo', 'What is 2+2?', '-t', '2', '--json'];

async function run(words: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const [stdout, stderr] = [new Output(false), new Output(false)];
  const environment = { ...fake({ input: '' }), stdout, stderr, loadCreateEngine: async () => createEngine };
  const status = await runCli(words, environment);
  return { status, stdout: stdout.text, stderr: stderr.text };
}

async function trace(name: string, words: readonly string[]): Promise<{ document: TraceDocument; final: FinalEvent }> {
  const file = join(folder, name);
  const before = readdirSync(folder);
  const { status, stdout, stderr } = await run([...PROMPT, '--trace-output', file, '-q', ...words]);
  assert.equal([status, stderr], [0, '']);
  assert.equal(
    readdirSync(folder).filter((entry) => !before.includes(entry)),
    [name],
    'one file, and no other',
  );
  return { document: JSON.parse(readFileSync(file, 'utf8')), final: JSON.parse(stdout) };
}

const plain = JSON.parse((await run(PROMPT)).stdout) as FinalEvent;
const withinOf = (event: TraceEvent): unknown => event.details?.within;
const nameOf = ({ name }: TraceEvent): string => name ?? '';

test('basic: the document of the issue, every duration measured, the parts of a phase not more than the phase', async () => {
  const { document, final } = await trace('basic.json', []);
  assert.equal(final.tokens, plain.tokens);
  assert.equal(Object.keys(document), [
    ...['version', 'timestamp', 'model', 'run', 'totals', 'events'],
    ...['error_count', 'warning_count'],
  ]);
  assert.is(document.version, '1.0');
  assert.is(new Date(document.timestamp).toISOString(), document.timestamp);
  assert.equal(document.model, {
    name: 'apr demo qwen3moe',
    architecture: 'qwen3moe',
    num_layers: 4,
    hidden_dim: 256,
    vocab_size: 1024,
    num_heads: 4,
  });
  const prompt_tokens = plain.prompt_tokens.length;
  const generated_tokens = plain.tokens.length;
  assert.equal(document.run, { prompt_tokens, generated_tokens, threads: 2, kernel: plain.backend.kernel });
  assert.equal(Object.keys(document.totals), ['load_us', 'prefill_us', 'decode_us', 'other_us']);
  assert.equal([document.error_count, document.warning_count], [0, 0]);
  const { events } = document;
  assert.equal(
    events.map(({ id }) => id),
    events.map((_, index) => index + 1),
  );
  for (const event of events) {
    assert.is(event.type, 'TaskStateExited');
    assert.ok(event.start_us >= 0 && event.duration_us >= 0 && Number.isInteger(event.position), JSON.stringify(event));
  }
  const count = (step: TraceEvent['step'], phase: TraceEvent['phase']): number =>
    events.filter((event) => event.step === step && event.phase === phase).length;
  const sampled = generated_tokens + 1; // and the end token
  assert.equal([count('TEMPLATE', 'prompt'), count('TOKENIZE', 'prompt')], [1, 1]);
  assert.equal([count('EMBED', 'prefill'), count('LM_HEAD', 'prefill')], [1, 1]);
  assert.equal([count('EMBED', 'decode'), count('LM_HEAD', 'decode')], [sampled - 1, sampled - 1]);
  assert.equal([count('SAMPLE', 'decode'), count('DECODE', 'decode')], [sampled, generated_tokens]);
  assert.ok(events.some(({ name, phase }) => name === 'load' && phase === 'load'));
  assert.ok(events.some(({ name, phase }) => name === 'prefill' && phase === 'prefill'));
  const decoded = events.filter(({ step, phase }) => step === 'EMBED' && phase === 'decode');
  assert.equal(
    decoded.map(({ position }) => position),
    decoded.map((_, index) => prompt_tokens + index),
  );
  // An event without `within` is a part of its phase.
  for (const phase of ['load', 'prefill', 'decode'] as const) {
    const parts = events.filter((event) => event.phase === phase && withinOf(event) === undefined);
    const sum = parts.reduce((total, { duration_us }) => total + duration_us, 0);
    const total = document.totals[`${phase}_us`]!;
    assert.ok(sum > 0 && sum <= total * 1.0001 + 1, `${phase}: parts ${sum}, total ${total}`);
  }
  const again = (await trace('again.json', [])).document;
  const durations = (all: readonly TraceEvent[]): number[] => all.map(({ duration_us }) => duration_us);
  assert.is(again.events.length, events.length);
  assert.not.equal(durations(again.events), durations(events));
});

test('parts are 85 to 100 % of each phase', async () => {
  // A machine that has other things to do takes time between two stretches: three tries.
  let shares: Record<string, number> = {};
  for (let attempt = 0; attempt < 3; attempt++) {
    const { stderr } = await run([...PROMPT, '--trace', '-n', '6']);
    shares = {};
    let phase = '';
    for (const line of stderr.split('\n')) {
      phase = /^(load|prefill|decode) /.exec(line)?.[1] ?? phase;
      const other = /^ {2}other .* (-?[\d.]+) %$/.exec(line)?.[1];
      if (other !== undefined) shares[phase] = 100 - Number(other);
    }
    if (Object.values(shares).every((share) => share >= 85 && share <= 100)) break;
  }
  assert.equal(Object.keys(shares), ['load', 'prefill', 'decode']);
  for (const [phase, share] of Object.entries(shares)) assert.ok(share >= 85 && share <= 100, `${phase}: ${share} %`);
});

test('layer: every block and its parts, one within the other, with the chosen experts', async () => {
  const { document, final } = await trace('layer.json', ['--trace-level', 'layer']);
  assert.equal(final.tokens, plain.tokens);
  const { events } = document;
  const byId = new Map(events.map((event) => [event.id, event]));
  const blocks = events.filter(({ step, layer }) => step === 'TRANSFORMER_BLOCK' && layer !== undefined);
  assert.is(blocks.length, 4 * (plain.tokens.length + 1), 'layers x passes');
  for (const block of blocks) {
    const parts = events.filter((event) => withinOf(event) === block.id);
    assert.equal(
      [...new Set(parts.map(({ details }) => details?.part))],
      ['attn_norm', 'qkv', 'qk_norm', 'rope', 'attention', 'attn_output', 'ffn_norm', 'router', 'gate_up', 'down'],
    );
    let at = block.start_us;
    for (const part of parts) {
      assert.is(part.layer, block.layer);
      assert.ok(Math.abs(part.start_us - at) < 0.01, `${part.name} begins where the one before ends`);
      at = part.start_us + part.duration_us;
    }
    assert.ok(Math.abs(at - block.start_us - block.duration_us) < 0.01);
    assert.is(byId.get(withinOf(block) as number)?.name, 'blocks');
  }
  const query = events.find(({ name, phase }) => name === 'blk.1.attn_q' && phase === 'decode')!;
  assert.equal(
    [query.input_shape, query.output_shape],
    [
      [256, 1],
      [256, 1],
    ],
  );
  assert.is(query.details?.weight, 'blk.1.attn_q.weight');
  const router = events.filter(({ name }) => name === 'blk.0.ffn_routing');
  assert.is(router.length, plain.tokens.length + 1);
  for (const { details } of router) {
    const { experts, weights } = details as { experts: number[]; weights: number[] };
    assert.ok(experts.length > 1 && new Set(experts).size === experts.length);
    const sum = weights.reduce((a, b) => a + b, 0);
    assert.ok(Math.abs(sum - 1) < 1e-5, `weights sum to ${sum}`);
  }
});

test('payload: statistics of every activation, of the last token or of all, and the best logits', async () => {
  const { document, final } = await trace('payload.json', ['--trace-payload']);
  assert.equal(final.tokens, plain.tokens);
  const seen = document.events.filter(({ stats }) => stats !== undefined);
  const names = new Set(seen.map(nameOf));
  for (const name of [
    'embd',
    'blk.0.attn_norm',
    'blk.3.ffn_residual',
    'blk.2.ffn_down_exps',
    'output_norm',
    'logits',
  ]) {
    assert.ok(names.has(name), name);
  }
  for (const { stats, output_shape, name } of seen) {
    assert.is(stats!.nan_count + stats!.inf_count, 0);
    assert.ok(stats!.min! <= stats!.mean! && stats!.mean! <= stats!.max!, name);
    assert.is(stats!.count % (name!.endsWith('ffn_routing') ? 1 : output_shape![0]!), 0);
  }
  const first = document.events.find(({ step, phase }) => step === 'LM_HEAD' && phase === 'prefill')!;
  const top = first.details?.top_logits as { token_id: number; logit: number }[];
  assert.is(top.length, 5);
  assert.is(top[0]!.token_id, plain.tokens[0]);
  assert.is(first.stats!.max, top[0]!.logit);
  const norm = (events: readonly TraceEvent[]): number =>
    events.find(({ name, phase }) => name === 'blk.0.attn_norm' && phase === 'prefill')!.stats!.count;
  assert.is(norm(document.events), 256);
  const all = (await trace('all.json', ['--trace-payload', '--trace-verbose', '-n', '1'])).document;
  assert.ok(norm(all.events) > 256);
});

test('payload, for people: what goes from block to block, finite or not, and the best tokens', async () => {
  const { status, stderr } = await run([...PROMPT, '--trace-payload', '-n', '2']);
  assert.is(status, 0);
  const lines = stderr.slice(stderr.indexOf('last pass')).trimEnd().split('\n');
  assert.is(lines[0], `last pass, position ${plain.prompt_tokens.length}`);
  assert.equal(
    lines.slice(2, -1).map((line) => line.split(' ')[0]),
    ['embd', ...[0, 1, 2, 3].map((layer) => `blk.${layer}.ffn_residual`), 'output_norm', 'logits'],
  );
  assert.match(lines.at(-1)!, new RegExp(`^most probable tokens \\(logits\\): ${plain.tokens[1]} `));
});

test('--trace-steps: these and no other', async () => {
  const { document } = await trace('steps.json', ['--trace-level', 'layer', '--trace-steps', 'attn,LM_HEAD']);
  assert.equal([...new Set(document.events.map(({ step }) => step))].sort(), ['ATTENTION', 'LM_HEAD']);
});

test('chrome: a row for the host and for each thread, slices nested, waits at barriers', async () => {
  const file = join(folder, 'chrome.json');
  const { status, stderr } = await run([...PROMPT, '--trace-level', 'chrome', '--trace-output', file, '-q']);
  assert.equal([status, stderr], [0, '']);
  const document = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(Object.keys(document), ['displayTimeUnit', 'otherData', 'traceEvents']);
  const rows = new Map<number, string>();
  const open = new Map<number, { name: string; end: number }[]>();
  let waits = 0;
  const slices = document.traceEvents.filter((event: { ph: string }) => event.ph === 'X');
  for (const { ph, name, tid, args } of document.traceEvents) {
    assert.ok(ph === 'X' || ph === 'M', ph);
    if (name === 'thread_name') rows.set(tid, args.name);
  }
  assert.equal(
    [...rows],
    [
      [0, 'host'],
      [1, 'kernel thread 0'],
      [2, 'kernel thread 1'],
    ],
  );
  slices.sort((a: { ts: number; dur: number }, b: { ts: number; dur: number }) => a.ts - b.ts || b.dur - a.dur);
  for (const { name, cat, pid, tid, ts, dur } of slices) {
    assert.ok(typeof name === 'string' && typeof cat === 'string' && pid === 1 && rows.has(tid));
    assert.ok(Number.isFinite(ts) && ts >= 0 && Number.isFinite(dur) && dur >= 0, name);
    if (cat === 'wait') waits++;
    const stack = open.get(tid) ?? [];
    while (stack.length > 0 && stack.at(-1)!.end <= ts + 0.0015) stack.pop();
    const outer = stack.at(-1);
    assert.ok(outer === undefined || ts + dur <= outer.end + 0.0015, `${name} reaches out of ${outer?.name}`);
    stack.push({ name, end: ts + dur });
    open.set(tid, stack);
  }
  assert.equal([...open.keys()].sort(), [0, 1, 2]);
  assert.ok(waits > 0);
  const categories = new Set(slices.map(({ cat }: { cat: string }) => cat));
  for (const cat of ['load', 'template', 'tokenize', 'prefill', 'decode', 'embed', 'layer', 'lm_head', 'sample']) {
    assert.ok(categories.has(cat), cat);
  }
});

test('tables on stderr; the layer table and the profile show the same totals', async () => {
  const { status, stdout, stderr } = await run([...PROMPT, '--trace-level', 'layer', '--profile']);
  assert.is(status, 0);
  assert.equal(JSON.parse(stdout).tokens, plain.tokens);
  const total = (phase: string): string => new RegExp(`^${phase} +([\\d.]+ ms)`, 'm').exec(stderr)![1]!;
  for (const phase of ['prefill', 'decode']) assert.ok(stderr.includes(`${phase}: ${total(phase)}, `), stderr);
  assert.match(stderr, /^ +all /m);
  assert.match(stderr, /^ {2}prepare and wake +[\d.]+ ms/m);
  assert.match(stderr, /mul_mat_id Q4_K +\d+ +[\d.]+ ms +[\d.]+ % +[\d.]+ us +\d+\.\d\d/);
  assert.match(stderr, /^thread 1: busy [\d.]+ ms, waiting [\d.]+ ms \([\d.]+ % busy\)$/m);
  assert.match(stderr, /^read bandwidth: /m);
  const P = plain.prompt_tokens.length;
  const D = plain.tokens.length + 1;
  assert.match(
    stderr,
    new RegExp(`^${P + D - 1} positions in ${D} passes, ${D} runs of the head, ${4 * D} of attention$`, 'm'),
  );
  assert.not.match(stderr, /warning/);
});

const asked = async (words: readonly string[], options: FakeOptions = {}) => {
  const environment = fake(options);
  const status = await runCli(['run', 'm.gguf', 'Hi', ...words], environment);
  return { status, seen: environment.seen, stderr: environment.stderr.text };
};

test('off, nobody looks on', async () => {
  for (const words of [[], ['--trace-level', 'none'], ['--trace', '--trace-level', 'none']]) {
    const { status, seen, stderr } = await asked(words);
    assert.equal([status, stderr], [0, '']);
    assert.not.ok('observer' in seen.request! || 'observer' in seen.options!);
  }
  const { seen } = await asked(['--trace']);
  assert.ok(seen.request?.observer !== undefined && seen.request.observer === seen.options?.observer);
});

for (const [words, status, message] of [
  [['--trace-level', 'all'], 2, /--trace-level is "all", expected one of none, basic, layer, payload, chrome/],
  [['--trace', '--trace-steps', 'attention,foo'], 2, /--trace-steps names "foo", expected steps out of LOAD/],
  [['--trace-steps', 'ffn'], 2, /--trace-steps says how to trace, but nothing is traced; add --trace/],
  [['--trace-level', 'chrome'], 2, /say where with --trace-output FILE/],
  [['--trace-level', 'none', '--trace-output', join(folder, 'x')], 2, /--trace-level none makes none/],
  [['--trace-payload', '--trace-level', 'layer'], 2, /exclude each other/],
  [['--trace-output', join(folder, 'absent', 'x.json')], 3, /there is no folder .*absent to write it to/],
  [['--trace-output', folder], 5, /is a directory/],
  [['--trace-output', '/dev/null'], 5, /is a device or pipe, expected the name of a file/],
] as const) {
  test(`refused before anything is loaded: ${words.join(' ')}`, async () => {
    const outcome = await asked(words);
    assert.is(outcome.status, status);
    assert.match(outcome.stderr, message);
    assert.is(outcome.seen.source, undefined);
  });
}

test('the model is never written over', async () => {
  const model = join(folder, 'model.gguf');
  writeFileSync(model, 'GGUF');
  const { status, stderr } = await run(['run', model, 'Hi', '--trace-output', join(folder, '.', 'model.gguf')]);
  assert.is(status, 2);
  assert.match(stderr, /--trace-output is .*model\.gguf, the model itself; give another file/);
  assert.is(readFileSync(model, 'utf8'), 'GGUF');
});

test('a run that fails leaves its trace, with the failure in it', async () => {
  const file = join(folder, 'failed.json');
  const failure = new Error('the machine is on fire');
  const { status, stderr } = await asked(['--trace-output', file], { failure });
  assert.is(status, 1);
  assert.match(stderr, /the machine is on fire/);
  const document = JSON.parse(readFileSync(file, 'utf8')) as TraceDocument;
  assert.is(document.error_count, 1);
  assert.is(document.events.at(-1)?.type, 'ExecutionFailed');
  assert.equal(document.events.at(-1)?.details, { message: failure.message });
});

test('an older trace is replaced whole', async () => {
  const file = join(folder, 'older.json');
  writeFileSync(file, 'x'.repeat(1e6));
  assert.is((await run([...PROMPT, '--trace-output', file, '-q', '-n', '1'])).status, 0);
  assert.is(JSON.parse(readFileSync(file, 'utf8')).version, '1.0');
});

test('the folder of this test is empty in the end', () => {
  rmSync(folder, { recursive: true });
});

test.run();
