/** A hub on this machine that can be told to misbehave. */

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answers a request for a file in place of the server; true when it did. */
export type Fault = (request: IncomingMessage, response: ServerResponse, content: Buffer) => boolean;

export const COMMIT = 'c'.repeat(40);
export const REPOSITORY = 'some-org/tiny-GGUF';

export class FakeHub {
  /** Path to content. */
  readonly files = new Map<string, Buffer>();
  /** `METHOD /path` of every request, with its range behind it. */
  readonly requests: string[] = [];
  /** The authorization header of every request. */
  readonly tokens: (string | undefined)[] = [];
  /** For requests of files. */
  fault: Fault | undefined;
  /** What the list of files is answered with, in place of the true one. */
  listing: ((response: ServerResponse) => void) | undefined;
  commit = COMMIT;
  /** Files are git's own and not large ones. */
  git = false;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<FakeHub> {
    const hub = new FakeHub();
    await new Promise<void>((resolve) => hub.#server.listen(0, '127.0.0.1', resolve));
    return hub;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Ranges of the requests for files, `all` for those without one. */
  get ranges(): string[] {
    return this.requests
      .filter((line) => line.includes('/resolve/') || line.includes('/files/'))
      .map((line) => line.split(' ')[2]!);
  }

  forget(): void {
    this.requests.length = 0;
    this.tokens.length = 0;
    this.fault = undefined;
    this.listing = undefined;
    this.commit = COMMIT;
    this.git = false;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url!.replace(/\?.*/, ''));
    this.requests.push(`${request.method} ${path} ${request.headers.range ?? 'all'}`);
    this.tokens.push(request.headers.authorization);
    if (path.startsWith('/api/models/')) {
      if (this.listing !== undefined) return this.listing(response);
      const siblings = [...this.files].map(([rfilename, content]) => ({
        rfilename,
        size: content.length,
        blobId: gitHash(content),
        ...(this.git ? {} : { lfs: { sha256: sha256(content), size: content.length, pointerSize: 134 } }),
      }));
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ id: REPOSITORY, sha: this.commit, siblings }));
      return;
    }
    const name = path.replace(/^\/(?:some-org\/[\w-]+\/resolve\/[0-9a-f]{40}|files)\//, '');
    const content = this.files.get(name);
    if (content === undefined) {
      response.statusCode = 404;
      response.end('Entry not found');
      return;
    }
    if (this.fault?.(request, response, content) === true) return;
    serve(request, response, content);
  }
}

/** An honest answer, with a range where one was asked for. */
export function serve(request: IncomingMessage, response: ServerResponse, content: Buffer): void {
  const from = rangeStart(request);
  response.setHeader('etag', `"${sha256(content)}"`);
  const other = request.headers['if-range'];
  if (from === undefined || (other !== undefined && other !== `"${sha256(content)}"`)) {
    response.setHeader('content-length', content.length);
    response.end(content);
  } else if (from >= content.length) {
    response.writeHead(416, { 'content-range': `bytes */${content.length}` });
    response.end();
  } else {
    response.writeHead(206, {
      'content-length': content.length - from,
      'content-range': `bytes ${from}-${content.length - 1}/${content.length}`,
    });
    response.end(content.subarray(from));
  }
}

export function rangeStart(request: IncomingMessage): number | undefined {
  const text = /^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1];
  return text === undefined ? undefined : Number(text);
}

/** Sends an honest answer's head, `bytes` of its body, and cuts the connection. */
export function cutAfter(bytes: number): Fault {
  return (request, response, content) => {
    const from = rangeStart(request) ?? 0;
    const length = content.length - from;
    response.writeHead(from === 0 ? 200 : 206, {
      'content-length': length,
      ...(from === 0 ? {} : { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` }),
      etag: `"${sha256(content)}"`,
    });
    response.write(content.subarray(from, from + Math.min(bytes, length)), () =>
      setTimeout(() => response.destroy(), 20),
    );
    return true;
  };
}

/** The fault for the first `count` requests only. */
export function times(count: number, fault: Fault): Fault {
  let left = count;
  return (...request) => left-- > 0 && fault(...request);
}

export function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export function gitHash(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
}
