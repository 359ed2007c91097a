/** The server of the chat page. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { DEMO, ROOT } from '../repository.ts';

const SCRIPT = join(ROOT, 'examples/web/server.mjs');
let server: ChildProcess;
let origin = '';

test.before(async () => {
  server = spawn(process.execPath, [SCRIPT, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(server.stdout!, 'data');
  origin = String(line).trim().replace(/\/$/, '').replace('localhost', '127.0.0.1');
});
test.after(() => void server.kill());

test('pages and modules are cross-origin isolated and have their media types', async () => {
  for (const [path, type] of [
    ['/', 'text/html; charset=utf-8'],
    ['/chat.js', 'text/javascript; charset=utf-8'],
    ['/apr/apr.js', 'text/javascript; charset=utf-8'],
    ['/apr/workers/web-engine.js', 'text/javascript; charset=utf-8'],
    ['/apr/assembly/simd-shared.wasm', 'application/wasm'],
  ] as const) {
    const response = await fetch(origin + path);
    assert.is(response.status, 200, path);
    assert.is(response.headers.get('content-type'), type);
    assert.is(response.headers.get('cross-origin-opener-policy'), 'same-origin');
    assert.is(response.headers.get('cross-origin-embedder-policy'), 'require-corp');
    await response.arrayBuffer();
  }
});

test('ranges of the model', async () => {
  const bytes = readFileSync(DEMO);
  const url = `${origin}/models/demo-qwen3moe-q4_k_m.gguf`;
  const part = await fetch(url, { headers: { range: 'bytes=1000-1999' } });
  assert.is(part.status, 206);
  assert.is(part.headers.get('content-range'), `bytes 1000-1999/${bytes.length}`);
  assert.equal(Buffer.from(await part.arrayBuffer()), bytes.subarray(1000, 2000));
  assert.is((await fetch(url, { headers: { range: `bytes=${bytes.length}-` } })).status, 416);
  const head = await fetch(url, { method: 'HEAD' });
  assert.is(head.headers.get('content-length'), String(bytes.length));
});

test('nothing outside its folders, and nothing but reading', async () => {
  for (const path of [
    '/nowhere',
    '/apr/',
    '/%E0%A4%A',
    '/models/%2e%2e%2fpackage.json',
    '/models/..%2f..%2fpackage.json',
  ]) {
    assert.is((await fetch(origin + path)).status, 404, path);
  }
  assert.is((await fetch(`${origin}/`, { method: 'POST' })).status, 404);
  // A path as no client would send it.
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  socket.write('GET /apr/../../package.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  assert.match(answer, /^HTTP\/1\.1 404 /);
});

test('a port that is none', () => {
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, 'eighty'], { encoding: 'utf8' });
  assert.is(status, 2);
  assert.match(stderr, 'the port is "eighty"');
});

test.run();
