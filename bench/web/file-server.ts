/** Serves folders to a page on this machine, cross-origin isolated, any range of any file; and takes its reports. */

import { createReadStream, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.wasm': 'application/wasm',
};

export interface FileServer {
  /** Without a slash at the end. */
  readonly origin: string;
  close(): Promise<void>;
}

export interface FileServerOptions {
  /** Folder, or file, by the beginning of the address; the first one that has the file is taken. */
  readonly routes: readonly (readonly [prefix: string, path: string])[];
  /** The page at `/`. */
  readonly page: string;
  /** Told what the page posts to `/report`. */
  readonly onReport: (report: unknown) => void;
}

export async function serveFiles(options: FileServerOptions): Promise<FileServer> {
  const server = createServer((request, response) => {
    response.setHeader('cross-origin-opener-policy', 'same-origin');
    response.setHeader('cross-origin-embedder-policy', 'require-corp');
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (request.method === 'POST' && pathname === '/report') {
      takeReport(request, response, options.onReport);
      return;
    }
    if (pathname === '/') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(options.page);
      return;
    }
    for (const [prefix, path] of options.routes) {
      if (!pathname.startsWith(prefix)) continue;
      const inside = normalize(decodeURIComponent(pathname.slice(prefix.length)));
      const file = pathname === prefix ? path : join(path, inside);
      if (inside.startsWith('..') || statSync(file, { throwIfNoEntry: false })?.isFile() !== true) continue;
      sendFile(file, request, response);
      return;
    }
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function sendFile(file: string, request: IncomingMessage, response: ServerResponse): void {
  const { size } = statSync(file);
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
  const start = match === null ? 0 : Number(match[1]);
  const end = match === null ? size - 1 : Math.min(size - 1, Number(match[2]));
  response.writeHead(match === null ? 200 : 206, {
    'content-type': MEDIA_TYPES[extname(file)] ?? 'application/octet-stream',
    'content-length': end - start + 1,
    ...(match === null ? {} : { 'content-range': `bytes ${start}-${end}/${size}` }),
  });
  createReadStream(file, { start, end }).pipe(response);
}

function takeReport(request: IncomingMessage, response: ServerResponse, onReport: (report: unknown) => void): void {
  let text = '';
  request.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  request.on('end', () => {
    response.end();
    onReport(JSON.parse(text));
  });
}
