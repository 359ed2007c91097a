// A function as serverless hosts call it: no threads, no SharedArrayBuffer, no files; the model and the kernels are bytes
// that came from somewhere. A Request comes in, a Response goes out, and its body is the answer as it is generated.
//
//   node examples/serverless.mjs "What is 2+2?"            # calls itself once
//
// For hosts that forbid compiling at run time, such as Cloudflare's workerd, `kernels` takes a WebAssembly.Module too.

import { AprError, createLocalEngine } from '@apr-runtime/apr/web';

/** @param {() => Promise<{ model: Uint8Array, kernels: object }>} fetchFiles is called for the first request */
export function createHandler(fetchFiles) {
  let loading;
  const load = async () => {
    const { model, kernels } = await fetchFiles();
    return createLocalEngine(model, { kernels, shared: false, contextLength: 1024 });
  };

  /** @param {Request} request with `{ "prompt": "…" }` */
  return async function handle(request) {
    try {
      const { prompt } = await request.json();
      // Once for the life of the instance; a failure is not kept.
      loading ??= load().catch((error) => {
        loading = undefined;
        throw error;
      });
      const engine = await loading;
      const messages = [{ role: 'user', content: prompt }];
      const events = engine.generate({ messages, maxTokens: 256, signal: request.signal });
      // An error before the first token still becomes a status.
      const first = await events[Symbol.asyncIterator]().next();
      return new Response(textStream(first, events), { headers: { 'content-type': 'text/plain; charset=utf-8' } });
    } catch (error) {
      if (error instanceof SyntaxError) return Response.json({ message: 'expected a JSON body' }, { status: 400 });
      if (!(error instanceof AprError)) throw error;
      const status = error.code === 'USAGE' || error.code === 'CONTEXT_EXCEEDED' ? 400 : 500;
      return Response.json({ code: error.code, message: error.message }, { status });
    }
  };
}

/** The text of the events; nothing is computed that nobody reads. */
function textStream(first, events) {
  const encoder = new TextEncoder();
  const iterator = events[Symbol.asyncIterator]();
  let next = first;
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = next ?? (await iterator.next());
        next = undefined;
        if (done) return controller.close();
        if (value.event !== 'token' || value.text === '') continue;
        return controller.enqueue(encoder.encode(value.text));
      }
    },
    cancel: () => iterator.return(),
  });
}

// Only when it is run itself: what a host's storage would do.
if (globalThis.process?.argv?.[1]?.endsWith('serverless.mjs')) {
  const { readFile } = await import('node:fs/promises');
  const file = async (path) => new Uint8Array(await readFile(new URL(`../${path}`, import.meta.url)));
  const handle = createHandler(async () => ({
    model: await file('models-fixtures/demo-qwen3moe-q4_k_m.gguf'),
    kernels: {
      'simd-plain': await file('dist/assembly/simd-plain.wasm'),
      'relaxed-plain': await file('dist/assembly/relaxed-plain.wasm'),
    },
  }));
  const body = JSON.stringify({ prompt: process.argv[2] ?? 'What is 2+2?' });
  const response = await handle(new Request('https://example.invalid/', { method: 'POST', body }));
  for await (const chunk of response.body) process.stdout.write(chunk);
  process.stdout.write('\n');
}
