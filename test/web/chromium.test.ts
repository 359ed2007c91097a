/** The engine in a real browser, where there is one: each test is a function of page.ts. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { findChromium, openChromium } from '../../bench/web/chromium.ts';
import { DEMO, ROOT } from '../repository.ts';
import { skipped } from '../skip.ts';
import { ISOLATED, PLAIN } from './page.ts';
import { startServer, type TestServer } from './server.ts';

interface Report {
  readonly name: string;
  readonly error?: string;
}

/** Longest time for one test of a page. */
const TEST_MS = 60_000;

const chromium = findChromium();
const tables = { ISOLATED, PLAIN };
const names = Object.values(tables).flatMap((table) => Object.keys(table));

if (chromium === undefined) skipped(names.length, 'no Chromium here (APR_CHROMIUM names one)');
else {
  const models = { 'demo.gguf': new Uint8Array(readFileSync(DEMO)) };
  const reports = new Map<string, (report: Report) => void>();
  const results = new Map(
    names.map((name) => [name, new Promise<Report>((resolve) => void reports.set(name, resolve))]),
  );
  const servers: TestServer[] = [];
  const browsers: (() => Promise<void>)[] = [];

  test.before(async () => {
    const other = await startServer({ models });
    const server = await startServer({
      models,
      // The page's own code lies beside the modules that it imports.
      roots: [join(ROOT, 'dist/web'), join(ROOT, 'dist')],
      handle: (request, response) => {
        const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
        if (request.method === 'POST' && pathname === '/report') {
          let text = '';
          request.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk;
          });
          request.on('end', () => {
            const report = JSON.parse(text) as Report;
            reports.get(report.name)?.(report);
            response.end();
          });
          return true;
        }
        if (pathname !== '/page' && pathname !== '/plain/page') return false;
        if (pathname === '/page') {
          response.setHeader('cross-origin-opener-policy', 'same-origin');
          response.setHeader('cross-origin-embedder-policy', 'require-corp');
        }
        response.setHeader('content-type', 'text/html; charset=utf-8');
        const table = searchParams.get('table');
        const context = JSON.stringify({ other: other.origin, model: '/ranges/demo.gguf', kernel: 'relaxed' });
        const folder = pathname === '/page' ? '' : '/plain';
        response.end(`<!doctype html><title>apr</title><script type="module">
          import * as page from '${folder}/test/web/page.js';
          await page.runAll(page.${table}, ${context});
        </script>`);
        return true;
      },
    });
    servers.push(other, server);
    browsers.push(openChromium(chromium, `${server.origin}/page?table=ISOLATED`));
    browsers.push(openChromium(chromium, `${server.origin}/plain/page?table=PLAIN`));
  });
  test.after(async () => {
    for (const close of browsers) await close();
    for (const server of servers) await server.close();
  });

  for (const name of names) {
    test(name, async () => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<Report>((resolve) => {
        timer = setTimeout(() => resolve({ name, error: `no report after ${TEST_MS / 1000} s` }), TEST_MS);
      });
      const { error } = await Promise.race([results.get(name)!, late]);
      clearTimeout(timer);
      assert.is(error, undefined, error);
    });
  }
  test.run();
}
