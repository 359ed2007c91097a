/** A server on the loopback interface: files of the build, and model files with the faults that servers have. */

import { readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.wasm': 'application/wasm',
};

/** How a model file is served, by the first folder of its address. */
export type Behaviour =
  | 'ranges'
  | 'whole'
  | 'chunked'
  | 'cut'
  | 'cut-once'
  | 'hidden-size'
  | 'short'
  | 'shifted'
  | 'changing'
  | 'versioned'
  | 'redirect'
  | 'busy-once'
  | 'busy';

export interface TestServer {
  /** Without a slash at the end. */
  readonly origin: string;
  /** Requests so far: method, path, range. */
  readonly requests: string[];
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Model files by name, found under every behaviour: `/ranges/NAME`. */
  readonly models?: Readonly<Record<string, Uint8Array>>;
  /** Folders that everything else is looked for in. */
  readonly roots?: readonly string[];
  /** Pages and files that exist nowhere; also a place for POST requests. */
  readonly handle?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

const BEHAVIOURS: Readonly<Record<Behaviour, (answer: Answer) => void>> = {
  ranges: (answer) => sendRange(answer),
  whole: ({ response, bytes }) => response.writeHead(200, { 'content-length': bytes.length }).end(bytes),
  chunked: ({ response, bytes }) => response.writeHead(200).end(bytes),
  cut: ({ response, bytes }) => cut(response, 200, bytes.length, bytes.subarray(0, bytes.length >> 1)),
  'cut-once': (answer) => {
    const { response, bytes, range, sameRange } = answer;
    if (sameRange === 1 && range !== undefined && range[0] > 0) {
      const [start, end] = range;
      cut(response, 206, end - start, bytes.subarray(start, start + 10), rangeHeader(range, bytes.length));
    } else sendRange(answer);
  },
  'hidden-size': (answer) => {
    if (answer.method === 'HEAD') answer.response.writeHead(200, { 'content-length': answer.bytes.length }).end();
    else sendRange(answer, { 'content-range': undefined });
  },
  short: (answer) => sendRange({ ...answer, range: answer.range && [answer.range[0], answer.range[1] - 7] }),
  shifted: (answer) => {
    const { range, bytes } = answer;
    const by = range !== undefined && range[0] > 0 ? 1 : 0;
    sendRange({ ...answer, range: range && [range[0] + by, Math.min(range[1] + by, bytes.length)] });
  },
  changing: (answer) =>
    sendRange(answer.times > 1 ? { ...answer, bytes: new Uint8Array(answer.bytes.length + 1) } : answer),
  versioned: (answer) => sendRange(answer, { etag: `"${answer.times > 1 ? 'b' : 'a'}"` }),
  redirect: ({ response, name }) => response.writeHead(302, { location: `/ranges/${name}` }).end(),
  'busy-once': (answer) => {
    if (answer.times > 1 && answer.sameRange === 1) answer.response.writeHead(503).end();
    else sendRange(answer);
  },
  busy: (answer) => {
    if (answer.times > 1) answer.response.writeHead(429).end();
    else sendRange(answer);
  },
};

interface Answer {
  readonly response: ServerResponse;
  readonly method: string;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** First byte, and the one behind the last. */
  readonly range: readonly [number, number] | undefined;
  /** Requests for this address, this one included; and those of them for the same range. */
  readonly times: number;
  readonly sameRange: number;
}

export async function startServer(options: ServerOptions): Promise<TestServer> {
  const requests: string[] = [];
  const times = new Map<string, number>();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const method = request.method ?? 'GET';
    requests.push(`${method} ${pathname} ${request.headers.range ?? ''}`.trim());
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('cross-origin-resource-policy', 'cross-origin');
    if (options.handle?.(request, response)) return;
    const [, behaviour = '', ...rest] = pathname.split('/');
    const name = rest.join('/');
    const bytes = options.models?.[name];
    if (behaviour in BEHAVIOURS && bytes !== undefined) {
      const count = (key: string): number => {
        times.set(key, (times.get(key) ?? 0) + 1);
        return times.get(key)!;
      };
      const range = readRange(request.headers.range, bytes.length);
      const sameRange = count(`${pathname} ${range?.join('-')}`);
      const answer = { response, method, name, bytes, range, times: count(pathname), sameRange };
      BEHAVIOURS[behaviour as Behaviour](answer);
      return;
    }
    sendFile(response, pathname, options.roots ?? []);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function readRange(header: string | undefined, size: number): [number, number] | undefined {
  const match = /^bytes=(\d+)-(\d+)$/.exec(header ?? '');
  return match === null ? undefined : [Number(match[1]), Math.min(size, Number(match[2]) + 1)];
}

function rangeHeader([start, end]: readonly [number, number], size: number): Record<string, string> {
  return { 'content-range': `bytes ${start}-${end - 1}/${size}` };
}

function sendRange({ response, bytes, range }: Answer, headers: Record<string, string | undefined> = {}): void {
  if (range === undefined) {
    response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
    return;
  }
  if (range[0] >= bytes.length) {
    response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end();
    return;
  }
  const all = { 'content-length': String(range[1] - range[0]), ...rangeHeader(range, bytes.length), ...headers };
  response.writeHead(206, Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));
  response.end(bytes.subarray(...range));
}

/** Promises `length` bytes, sends some and breaks the connection. */
function cut(response: ServerResponse, status: number, length: number, sent: Uint8Array, headers = {}): void {
  response.writeHead(status, { 'content-length': length, ...headers });
  response.write(sent, () => response.destroy());
}

function sendFile(response: ServerResponse, pathname: string, roots: readonly string[]): void {
  // Isolated, unless the address asks for a page that is not.
  const isolated = !pathname.startsWith('/plain/');
  const path = normalize(isolated ? pathname : pathname.slice('/plain'.length));
  const file = path.includes('..') ? undefined : roots.map((root) => join(root, path)).find(isFile);
  if (file === undefined) {
    response.writeHead(404).end('not found');
    return;
  }
  response.writeHead(200, {
    'content-type': MEDIA_TYPES[extname(file)] ?? 'application/octet-stream',
    ...(isolated
      ? { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' }
      : {}),
  });
  response.end(readFileSync(file));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
