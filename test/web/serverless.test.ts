/** Places that offer less than Node does: no threads, no shared memory, no compiling. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { DEMO, ROOT } from '../repository.ts';

function run(args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.is(status, 0, stderr);
  return stdout;
}

test('the example of a serverless function answers, in a process that may not start threads', () => {
  const permission = Number.parseInt(process.versions.node, 10) < 22 ? '--experimental-permission' : '--permission';
  const args = [permission, '--allow-fs-read=*', '--no-warnings', join(ROOT, 'examples/serverless.mjs')];
  assert.is(run(args), '2 + 2 = 4\n');
});

test('the example answers with a status: 400 for what the caller did, and goes on', () => {
  const script = `
    const { readFileSync } = await import('node:fs');
    const { createHandler } = await import('./examples/serverless.mjs');
    let calls = 0;
    const read = (path) => new Uint8Array(readFileSync(path));
    const handle = createHandler(async () => ({
      model: calls++ === 0 ? read('package.json') : read(${JSON.stringify(DEMO)}),
      kernels: { 'simd-plain': read('dist/assembly/simd-plain.wasm'), 'relaxed-plain': read('dist/assembly/relaxed-plain.wasm') },
    }));
    const ask = async (body) => {
      const response = await handle(new Request('https://example.invalid/', { method: 'POST', body }));
      return [response.status, (await response.text()).slice(0, 40)];
    };
    const prompt = JSON.stringify({ prompt: 'What is 2+2?' });
    console.log(JSON.stringify([await ask('no json'), await ask(prompt), await ask('{}'), await ask(prompt), calls]));`;
  const [noJson, badModel, noPrompt, answer, calls] = JSON.parse(run(['--input-type=module', '-e', script]));
  assert.is(noJson[0], 400);
  assert.is(badModel[0], 500);
  assert.match(badModel[1], 'BAD_FORMAT');
  assert.is(noPrompt[0], 400);
  assert.equal(answer, [200, '2 + 2 = 4']);
  assert.is(calls, 2);
});

test('without SharedArrayBuffer, Workers and MessageChannel, with modules that are compiled already', () => {
  const script = `
    const { readFileSync } = await import('node:fs');
    const modules = {};
    for (const build of ['simd-plain', 'relaxed-plain']) {
      const bytes = readFileSync('dist/assembly/' + build + '.wasm');
      if (WebAssembly.validate(bytes)) modules[build] = new WebAssembly.Module(bytes);
    }
    for (const name of ['SharedArrayBuffer', 'MessageChannel', 'setImmediate']) delete globalThis[name];
    const forbidden = () => { throw new WebAssembly.CompileError('code generation disallowed by embedder'); };
    WebAssembly.compile = forbidden;
    WebAssembly.Module = new Proxy(WebAssembly.Module, { construct: forbidden });
    const { createLocalEngine, createEngine } = await import('./dist/src/web.js');
    const model = readFileSync(${JSON.stringify(DEMO)});
    for (const source of [model, new Blob([model])]) {
      const engine = await createLocalEngine(source, { kernels: modules });
      const { threads, kernel } = engine.info.backend;
      for await (const event of engine.generate({ messages: [{ role: 'user', content: 'What is 2+2?' }] })) {
        if (event.event === 'final') console.log(event.text, threads, kernel);
      }
      await engine.dispose();
    }
    const failed = (promise) => promise.catch(({ code }) => console.log(code));
    await failed(createLocalEngine(model, { kernels: modules, threads: 2 }));
    await failed(createLocalEngine('model.gguf', { kernels: modules }));
    await failed(createEngine(model));`;
  const lines = run(['--input-type=module', '-e', script]).trim().split('\n');
  // What cannot be tried out is not used.
  assert.equal(lines, ['2 + 2 = 4 1 simd', '2 + 2 = 4 1 simd', 'USAGE', 'USAGE', 'BACKEND_UNAVAILABLE']);
});

test('without Atomics.waitAsync, as in browsers that are not new: answers, aborts and timers', () => {
  const script = `
    delete Atomics.waitAsync;
    const { createEngine } = await import('./dist/src/index.js');
    const engine = await createEngine(${JSON.stringify(DEMO)}, { threads: 2 });
    const messages = [{ role: 'user', content: 'What is 2+2?' }];
    for await (const event of engine.generate({ messages })) if (event.event === 'final') console.log(event.text);
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 20);
    const request = { messages, ignoreEos: true, maxTokens: 480, signal: controller.signal };
    try {
      for await (const _ of engine.generate(request));
    } catch ({ code }) {
      console.log(code);
    }
    await engine.dispose();`;
  assert.is(run(['--input-type=module', '-e', script]), '2 + 2 = 4\nABORTED\n');
});

test.run();
