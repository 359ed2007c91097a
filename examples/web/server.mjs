// Serves the chat page of this folder. What a server has to do for apr: send two headers, so that the page's threads may
// share memory, and ranges of the model file, so that its threads can fetch it in parallel.
//
//   npm run build && node examples/web/server.mjs [PORT]

import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Folders by the beginning of the address. */
const FOLDERS = [
  ['/apr/', here('../../dist/web')],
  ['/models/', here('../../models-fixtures')],
  ['/', here('.')],
];
const MEDIA_TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

function answer(request, response) {
  // Together they make a page cross-origin isolated: only then is there SharedArrayBuffer in it.
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp');
  response.setHeader('Cache-Control', 'no-cache');
  const file = fileOf(request.url ?? '/');
  if (file === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) {
    response.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' }).end('not found\n');
    return;
  }
  const { size } = statSync(file);
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const start = range === null ? 0 : Number(range[1]);
  const end = range === null || range[2] === '' ? size - 1 : Math.min(size - 1, Number(range[2]));
  if (range !== null && start > end) {
    response.writeHead(416, { 'Content-Range': `bytes */${size}` }).end();
    return;
  }
  response.writeHead(range === null ? 200 : 206, {
    'Accept-Ranges': 'bytes',
    'Content-Length': end - start + 1,
    'Content-Type': MEDIA_TYPES[extname(file)] ?? 'application/octet-stream',
    ...(range === null ? {} : { 'Content-Range': `bytes ${start}-${end}/${size}` }),
  });
  if (request.method === 'HEAD' || size === 0) response.end();
  else createReadStream(file, { start, end }).pipe(response);
}

function fileOf(url) {
  let path;
  try {
    path = decodeURIComponent(new URL(url, 'http://localhost').pathname);
  } catch {
    return undefined; // no address
  }
  const [prefix, folder] = FOLDERS.find(([prefix]) => path.startsWith(prefix));
  const inside = normalize(path.slice(prefix.length) || 'index.html');
  if (inside.startsWith('..') || inside.includes('\0')) return undefined;
  const file = join(folder, inside);
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? file : undefined;
}

const port = Number(process.argv[2] ?? 8080);
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(`the port is "${process.argv[2]}", expected a whole number from 0 to 65535`);
  process.exit(2);
}
if (statSync(here('../../dist/web/apr.js'), { throwIfNoEntry: false }) === undefined) {
  console.error('dist/web is missing; run "npm run build" first');
  process.exit(1);
}
const server = createServer(answer);
server.on('error', (error) => {
  console.error(error.code === 'EADDRINUSE' ? `port ${port} is taken; name another one` : error.message);
  process.exit(1);
});
server.listen(port, '127.0.0.1', () => console.log(`http://localhost:${server.address().port}/`));
