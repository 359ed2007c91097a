/** dist/web: what a page can load without a bundler. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ROOT } from '../repository.ts';

const target = mkdtempSync(join(tmpdir(), 'apr-web-'));
test.after(() => rmSync(target, { recursive: true }));

test('every import of every module is a path to a file that is there', async () => {
  const { buildWeb } = (await import(pathToFileURL(join(ROOT, '.ci/build-web.mjs')).href)) as {
    buildWeb: (root: string, target: string) => string[];
  };
  const modules = buildWeb(ROOT, target);
  assert.ok(modules.includes('workers/web-kernel.js') && modules.includes('apr.js'));
  for (const module of modules) {
    const text = readFileSync(join(target, module), 'utf8');
    for (const [, specifier = ''] of text.matchAll(
      /^(?:import|export)\b[^;'"]*?(?:\bfrom |^import )['"]([^'"\n]+)['"];/gm,
    )) {
      assert.match(specifier, /^\.\.?\//, `${module} imports ${specifier}`);
      assert.ok(existsSync(join(target, dirname(module), specifier)), `${module} imports ${specifier}`);
    }
    for (const [, path = ''] of text.matchAll(/new URL\('([^']+)', import\.meta\.url\)/g)) {
      assert.ok(existsSync(join(target, dirname(module), path)), `${module} names ${path}`);
    }
    assert.not.match(text, /['"]node:/);
  }
});

test('it loads, and has what the package exports for the web', async () => {
  const built = (await import(pathToFileURL(join(target, 'apr.js')).href)) as object;
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const entry = manifest.exports['./web'] as { types: string; default: string };
  assert.ok(existsSync(join(ROOT, entry.types)));
  const exported = (await import(pathToFileURL(join(ROOT, entry.default)).href)) as object;
  assert.equal(Object.keys(built).sort(), Object.keys(exported).sort());
  assert.ok('createEngine' in built && 'createLocalEngine' in built && 'AprError' in built);
});

test.run();
