/** Downloads from a hub that cuts connections, lies and refuses: the right file, or an error and a part to go on with. */

import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AprError } from '../../src/errors.ts';
import {
  cachedModel,
  type HubSettings,
  hubSettings,
  listHubCache,
  listUrlCache,
  type PulledModel,
  type PullOptions,
  type PullProgress,
  pull,
  referenceOf,
  removeModel,
  unfinishedParts,
} from '../../src/hub/index.ts';
import { FIXTURES } from '../repository.ts';
import {
  COMMIT,
  cutAfter,
  FakeHub,
  type Fault,
  gitHash,
  REPOSITORY,
  rangeStart,
  serve,
  sha256,
  times,
} from './server.ts';

const hub = await FakeHub.start();
const elsewhere = await FakeHub.start();
const MODEL = readFileSync(join(FIXTURES, 'tiny-qwen2-f16.gguf'));
const NAME = 'tiny-Q4_K_M.gguf';
const FOLDER = `models--${REPOSITORY.replace('/', '--')}`;

let root = '';
let settings: HubSettings;
let notes: string[] = [];

test.before.each(() => {
  root = mkdtempSync(join(tmpdir(), 'apr-hub-'));
  settings = {
    hubCache: join(root, 'hub'),
    urlCache: join(root, 'apr'),
    endpoint: hub.endpoint,
    token: undefined,
    offline: false,
  };
  notes = [];
  hub.forget();
  elsewhere.forget();
  hub.files.clear();
  hub.files.set(NAME, MODEL);
  hub.files.set('README.md', Buffer.from('# about'));
});
test.after.each(() => rmSync(root, { recursive: true, force: true }));
test.after(async () => {
  await hub.stop();
  await elsewhere.stop();
});

function pulled(text = `hf://${REPOSITORY}`, options: PullOptions = {}): Promise<PulledModel> {
  const retry = { attempts: 3, delayMs: 1, ...options.retry };
  return pull(referenceOf(text, settings)!, { settings, onNote: (note) => notes.push(note), ...options, retry });
}

async function failure(promise: Promise<unknown>): Promise<AprError> {
  try {
    await promise;
  } catch (error) {
    assert.instance(error, AprError);
    return error as AprError;
  }
  throw new Error('expected a failure');
}

const blobs = (): string[] => {
  const folder = join(settings.hubCache, FOLDER, 'blobs');
  return existsSync(folder) ? readdirSync(folder).sort() : [];
};
const part = (content = MODEL): string => join(settings.hubCache, FOLDER, 'blobs', `${sha256(content)}.apr.incomplete`);
/** Nothing that could be taken for the model is anywhere. */
const nothingThere = (): void => {
  assert.is(cachedModel(referenceOf(`hf://${REPOSITORY}`, settings)!, settings), undefined);
  assert.is(blobs().includes(sha256(MODEL)), false);
  assert.equal(listHubCache(settings), []);
};

test('the cache is laid out as the hub documents it', async () => {
  const progress: PullProgress[] = [];
  const model = await pulled(undefined, { onProgress: (step) => progress.push(step) });
  const folder = join(settings.hubCache, FOLDER);
  const path = join(folder, 'snapshots', COMMIT, NAME);
  assert.equal(model, {
    reference: `hf://${REPOSITORY}/${NAME}`,
    path,
    files: [{ path, size: MODEL.length, sha256: sha256(MODEL) }],
    size: MODEL.length,
    quantisation: 'Q4_K_M',
    others: [],
    commit: COMMIT,
    received: MODEL.length,
  });
  assert.equal(readFileSync(path), MODEL);
  assert.is(readlinkSync(path), `../../blobs/${sha256(MODEL)}`);
  assert.is(readFileSync(join(folder, 'refs', 'main'), 'utf8'), COMMIT);
  assert.equal(blobs(), [sha256(MODEL)]);
  assert.equal(progress.at(-1), { file: NAME, number: 1, of: 1, bytes: MODEL.length, total: MODEL.length });
  assert.equal(readdirSync(join(settings.hubCache, '.locks', FOLDER)), []);
});

test('what is there is not fetched again, and found without the network', async () => {
  await pulled();
  hub.forget();
  assert.is((await pulled()).received, 0);
  assert.equal(hub.ranges, []);
  assert.is((await pulled(undefined, { offline: true })).path, (await pulled()).path);
  assert.is(cachedModel(referenceOf(`hf://${REPOSITORY}:Q4_K_M`, settings)!, settings)?.quantisation, 'Q4_K_M');
  assert.is(cachedModel(referenceOf(`hf://${REPOSITORY}:Q8_0`, settings)!, settings), undefined);
  const { code, message } = await failure(pulled(`hf://${REPOSITORY}:Q8_0`, { offline: true }));
  assert.is(code, 'NOT_FOUND');
  assert.match(message, /Q8_0: is not on this disk .*--offline forbids/);
});

test('a new commit with the same file: a link, and no byte', async () => {
  const old = await pulled();
  hub.commit = 'd'.repeat(40);
  const model = await pulled();
  assert.is(model.received, 0);
  assert.is(realpathSync(model.path), realpathSync(old.path));
  assert.is(readFileSync(join(settings.hubCache, FOLDER, 'refs', 'main'), 'utf8'), hub.commit);
  assert.equal(
    listHubCache(settings).map(({ path }) => path),
    [model.path],
  );
});

test('small files that git keeps itself are known by its hash', async () => {
  hub.git = true;
  const model = await pulled();
  assert.equal(blobs(), [gitHash(MODEL)]);
  assert.is(model.files[0]!.sha256, null);
  hub.fault = (request, response, content) => {
    serve(request, response, Buffer.concat([content.subarray(0, -1), Buffer.of(content.at(-1)! ^ 1)]));
    return true;
  };
  rmSync(settings.hubCache, { recursive: true });
  assert.match((await failure(pulled())).message, /its git hash is [0-9a-f]{40}, expected/);
});

test('cut connections: it goes on where it was, in the same pull', async () => {
  hub.fault = times(2, cutAfter(70_000));
  const model = await pulled();
  assert.equal(readFileSync(model.path), MODEL);
  assert.is(hub.ranges[0], 'all');
  assert.is(hub.ranges.length, 3);
  assert.match(hub.ranges[1]!, /^bytes=[1-9]\d*-$/);
  assert.is(model.received, MODEL.length);
  assert.match(notes.join('\n'), /the connection to 127\.0\.0\.1:\d+ failed .*; trying again in 1 s/);
});

test('cut for good: an error, and a part that the next pull goes on with', async () => {
  hub.fault = cutAfter(70_000);
  const error = await failure(pulled(undefined, { retry: { attempts: 1 } }));
  assert.is(error.code, 'IO');
  nothingThere();
  const { size } = statSync(part());
  assert.ok(size > 0 && size <= 70_000);
  assert.equal(
    unfinishedParts(settings).map(({ name, size }) => [name, size]),
    [[NAME, size]],
  );
  hub.forget();
  const model = await pulled();
  assert.equal(hub.ranges, [`bytes=${size}-`]);
  assert.equal(readFileSync(model.path), MODEL);
  assert.is(model.received, MODEL.length - size);
  assert.match(notes.at(-1)!, /going on after/);
  assert.equal(blobs(), [sha256(MODEL)]);
});

test('attempts that get nowhere end', async () => {
  hub.fault = cutAfter(0);
  const { code, message } = await failure(pulled());
  assert.is(code, 'IO');
  assert.match(message, /3 times in a row$/);
  assert.is(hub.ranges.length, 3);
  nothingThere();
  assert.equal([blobs(), unfinishedParts(settings)], [[], []]);
});

test('a server without ranges: it starts over, and says so', async () => {
  const whole: Fault = (_, response, content) => {
    response.setHeader('content-length', content.length);
    response.end(content);
    return true;
  };
  let first = true;
  hub.fault = (...request) => {
    const cut = first;
    first = false;
    return cut ? cutAfter(50_000)(...request) : whole(...request);
  };
  const model = await pulled();
  assert.equal(readFileSync(model.path), MODEL);
  assert.match(notes.at(-1)!, /cannot go on after .*; starting over/);
});

test('a part that is longer than the file, or of another one, does no harm', async () => {
  mkdirSync(dirname(part()), { recursive: true });
  writeFileSync(part(), Buffer.alloc(MODEL.length + 1));
  assert.equal(readFileSync((await pulled()).path), MODEL);
  rmSync(settings.hubCache, { recursive: true });
  mkdirSync(dirname(part()), { recursive: true });
  writeFileSync(part(), Buffer.alloc(1000));
  assert.match((await failure(pulled())).message, /SHA-256 is .*; it was removed/);
  assert.equal(blobs(), []);
  assert.equal(readFileSync((await pulled()).path), MODEL);
});

test('lies about the length are found before anything is written', async () => {
  for (const length of [MODEL.length - 1, MODEL.length + 1]) {
    hub.fault = (_, response, content) => {
      response.setHeader('content-length', length);
      response.write(content.subarray(0, Math.min(length, content.length)));
      setTimeout(() => response.destroy(), 50);
      return true;
    };
    const { code, message } = await failure(pulled());
    assert.is(code, 'IO');
    assert.match(message, new RegExp(`says that it is ${length} bytes long, expected ${MODEL.length}`));
    nothingThere();
  }
});

test('more bytes than the file has, with no length said', async () => {
  hub.fault = (_, response, content) => {
    response.write(content);
    response.end(Buffer.alloc(100_000));
    return true;
  };
  assert.match((await failure(pulled())).message, /sends more than the \d+ bytes/);
  nothingThere();
});

test('fewer bytes than the file has, with no length said', async () => {
  hub.fault = (request, response, content) => {
    if (rangeStart(request) !== undefined) return false;
    response.write(content.subarray(0, 60_000), () => response.end());
    return true;
  };
  const model = await pulled();
  assert.equal(readFileSync(model.path), MODEL);
  assert.equal(hub.ranges, ['all', 'bytes=60000-']);
});

test('other bytes of the right length are not taken for the file', async () => {
  hub.fault = (request, response, content) => {
    const wrong = Buffer.from(content);
    wrong[content.length >> 1]! ^= 1;
    serve(request, response, wrong);
    return true;
  };
  const { code, message } = await failure(pulled());
  assert.is(code, 'BAD_FORMAT');
  assert.match(message, new RegExp(`its SHA-256 is [0-9a-f]{64}, expected ${sha256(MODEL)}; it was removed`));
  nothingThere();
  assert.equal(blobs(), []);
});

test('a page of HTML with status 200 is none, and does not spoil the part', async () => {
  const page: Fault = (_, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!DOCTYPE html><html><body>Sign in to the hotel network</body></html>');
    return true;
  };
  hub.fault = page;
  const { code, message } = await failure(pulled());
  assert.is(code, 'BAD_FORMAT');
  assert.match(message, /what the server sends is no model: it is an HTML page/);
  nothingThere();
  hub.fault = times(1, cutAfter(70_000));
  await failure(pulled(undefined, { retry: { attempts: 1 } }));
  const { size } = statSync(part());
  hub.fault = page;
  await failure(pulled());
  assert.is(statSync(part()).size, size);
  hub.forget();
  assert.is((await pulled()).received, MODEL.length - size);
});

test('bytes from another place than asked for are refused', async () => {
  hub.fault = times(1, cutAfter(70_000));
  await failure(pulled(undefined, { retry: { attempts: 1 } }));
  hub.fault = (_, response, content) => {
    response.writeHead(206, { 'content-range': `bytes 5-${content.length - 1}/${content.length}` });
    response.end(content.subarray(5));
    return true;
  };
  assert.match((await failure(pulled())).message, /sent bytes from 5 where those from \d+ were asked for/);
  nothingThere();
});

test('a server that compresses is refused', async () => {
  hub.fault = (_, response, content) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    response.end(content);
    return true;
  };
  assert.match((await failure(pulled())).message, /sends it compressed \(gzip\)/);
});

test('redirects: followed, without the token to another server, and not in circles', async () => {
  settings = { ...settings, token: 'hf_secret' };
  elsewhere.files.set('blob', MODEL);
  hub.fault = (_, response) => {
    response.writeHead(302, { location: `${elsewhere.endpoint}/files/blob` });
    response.end();
    return true;
  };
  assert.equal(readFileSync((await pulled()).path), MODEL);
  assert.equal(new Set(hub.tokens), new Set(['Bearer hf_secret']));
  assert.equal(elsewhere.tokens, [undefined]);
  rmSync(settings.hubCache, { recursive: true });
  hub.fault = (request, response) => {
    response.writeHead(307, { location: request.url! });
    response.end();
    return true;
  };
  assert.match((await failure(pulled())).message, /redirects more than 10 times/);
  hub.fault = (_, response) => {
    response.writeHead(302, { location: 'file:///etc/passwd' });
    response.end();
    return true;
  };
  assert.match((await failure(pulled())).message, /redirects to "file:\/\/\/etc\/passwd", which is no address/);
});

test('asked to wait, it waits; for too long, it says for how long', async () => {
  hub.fault = times(1, (_, response) => {
    response.writeHead(429, { 'retry-after': '1' });
    response.end();
    return true;
  });
  const start = performance.now();
  assert.equal(readFileSync((await pulled()).path), MODEL);
  assert.ok(performance.now() - start >= 990);
  assert.match(notes[0]!, /answered 429 .*; trying again in 1 s/);
  hub.listing = (response) => {
    response.writeHead(429, { 'retry-after': '600' });
    response.end();
  };
  assert.match((await failure(pulled())).message, /answered 429 .*; try again in 10 minutes, as it asks/);
});

test('a server that falls silent is given up', async () => {
  hub.fault = times(1, (_, response, content) => {
    response.setHeader('content-length', content.length);
    response.write(content.subarray(0, 70_000));
    return true;
  });
  assert.equal(readFileSync((await pulled(undefined, { stallMs: 300 })).path), MODEL);
  assert.match(notes[0]!, /nothing came for 0\.3 s/);
  rmSync(settings.hubCache, { recursive: true });
  hub.fault = () => true;
  assert.match((await failure(pulled(undefined, { stallMs: 100 }))).message, /no answer for 0\.1 s/);
});

test('a server error that passes, and one that does not', async () => {
  hub.fault = times(2, (_, response) => {
    response.statusCode = 503;
    response.end();
    return true;
  });
  assert.equal(readFileSync((await pulled()).path), MODEL);
  rmSync(settings.hubCache, { recursive: true });
  hub.fault = (_, response) => {
    response.statusCode = 403;
    response.setHeader('x-error-message', 'Access to model is restricted');
    response.end();
    return true;
  };
  hub.requests.length = 0;
  const { code, message } = await failure(pulled());
  assert.is(code, 'IO');
  assert.match(message, /403 Forbidden \(Access to model is restricted\); .*HF_TOKEN/);
  assert.is(hub.ranges.length, 1);
});

test('a repository that is not there, or is private', async () => {
  for (const status of [401, 404]) {
    hub.listing = (response) => {
      response.statusCode = status;
      response.end('{"error":"Repository not found"}');
    };
    const { code, message } = await failure(pulled());
    assert.is(code, 'NOT_FOUND');
    assert.match(message, /there is no such/);
  }
});

test('a list of files that is none, or names files outside', async () => {
  const listings: readonly (readonly [string, RegExp])[] = [
    ['<html>Welcome</html>', /answered with an HTML page/],
    ['not json', /answered with no JSON/],
    ['null', /names no commit/],
    ['{"sha":"../../..","siblings":[]}', /names no commit/],
    [JSON.stringify({ sha: COMMIT }), /holds no files/],
    [listingOf({ rfilename: '../../evil.gguf' }), /names a file "\.\.\/\.\.\/evil\.gguf"/],
    [listingOf({ rfilename: '/tmp/evil.gguf' }), /names a file/],
    [listingOf({ rfilename: 'a\\..\\evil.gguf' }), /names a file/],
    [listingOf({ rfilename: 'C:evil.gguf' }), /names a file/],
    [listingOf({ lfs: { sha256: '../../evil', size: 5 } }), /gives no SHA-256 of a\.gguf/],
    [listingOf({ lfs: { sha256: 'a'.repeat(64), size: -5 } }), /does not say how long/],
    [listingOf({ lfs: undefined, size: 5, blobId: '../evil' }), /gives no git hash/],
  ];
  for (const [body, message] of listings) {
    hub.listing = (response) => response.end(body);
    const error = await failure(pulled());
    assert.is(error.code, 'BAD_FORMAT', body);
    assert.match(error.message, message);
  }
  assert.equal(readdirSync(root), []);
});

function listingOf(change: Record<string, unknown>): string {
  const lfs = { sha256: 'a'.repeat(64), size: 5 };
  return JSON.stringify({ sha: COMMIT, siblings: [{ rfilename: 'a.gguf', lfs, ...change }] });
}

test('two pulls at once: one fetches, the other waits for it', async () => {
  let running = 0;
  let most = 0;
  hub.fault = (request, response, content) => {
    most = Math.max(most, ++running);
    setTimeout(() => {
      running--;
      serve(request, response, content);
    }, 100);
    return true;
  };
  const both = await Promise.all([pulled(), pulled()]);
  assert.is(most, 1);
  assert.equal(both.map(({ received }) => received).sort(), [0, MODEL.length]);
  assert.match(notes.join('\n'), /process \d+ on .* is fetching it; waiting/);
});

test('the lock of a process that is gone, or silent, is taken away', async () => {
  const lock = join(settings.hubCache, '.locks', FOLDER, `${sha256(MODEL)}.apr.lock`);
  mkdirSync(dirname(lock), { recursive: true });
  writeFileSync(lock, JSON.stringify({ pid: 2 ** 30, host: hostname(), id: 'x' }));
  assert.is((await pulled()).received, MODEL.length);
  assert.is(existsSync(lock), false);
  writeFileSync(lock, JSON.stringify({ pid: process.pid, host: 'another', id: 'x' }));
  const long = new Date(Date.now() - 120_000);
  utimesSync(lock, long, long);
  await pulled();
  assert.is(existsSync(lock), false);
});

test('an interrupt leaves the part, and gives the lock back', async () => {
  const controller = new AbortController();
  hub.fault = (_, response, content) => {
    response.setHeader('content-length', content.length);
    response.write(content.subarray(0, 70_000));
    setTimeout(() => controller.abort(), 50);
    return true;
  };
  assert.is((await failure(pulled(undefined, { signal: controller.signal }))).code, 'ABORTED');
  nothingThere();
  assert.ok(statSync(part()).size > 0);
  assert.equal(readdirSync(join(settings.hubCache, '.locks', FOLDER)), []);
});

test('files in the cache that are not what they should be are fetched again', async () => {
  const { path } = await pulled();
  writeFileSync(realpathSync(path), MODEL.subarray(0, 1000));
  assert.is((await pulled()).received, MODEL.length);
  assert.match(notes.at(-1)!, /has 1000 bytes, expected \d+; fetching it again/);
  assert.equal(readFileSync(path), MODEL);
  const wrong = Buffer.from(MODEL);
  wrong[5000]! ^= 1;
  writeFileSync(realpathSync(path), wrong);
  assert.is((await pulled()).received, 0);
  assert.is((await pulled(undefined, { verify: true })).received, MODEL.length);
  assert.equal(readFileSync(path), MODEL);
  assert.is((await pulled(undefined, { verify: true })).received, 0);
});

test('a copy in the snapshot, as where links are not possible, is as good', async () => {
  const { path } = await pulled();
  rmSync(path);
  rmSync(join(settings.hubCache, FOLDER, 'blobs'), { recursive: true });
  writeFileSync(path, MODEL);
  assert.is((await pulled()).received, 0);
  assert.is(lstatSync(path).isSymbolicLink(), false);
  const [model] = listHubCache(settings);
  assert.is(await removeModel(settings, model!), MODEL.length);
  assert.is(existsSync(join(settings.hubCache, FOLDER)), false);
});

test('the quantisation: the most wanted, the one asked for, or a list', async () => {
  hub.files.set('tiny-Q8_0.gguf', MODEL);
  hub.files.set('tiny-BF16.gguf', MODEL);
  const { quantisation, others } = await pulled();
  assert.equal([quantisation, others], ['Q4_K_M', ['Q8_0', 'BF16']]);
  assert.is((await pulled(`hf://${REPOSITORY}:q8_0`)).quantisation, 'Q8_0');
  assert.is((await pulled(`hf://${REPOSITORY}/tiny-BF16.gguf@main`)).quantisation, 'BF16');
  assert.match((await failure(pulled(`hf://${REPOSITORY}:Q2_K`))).message, /has no Q2_K; it has Q4_K_M, Q8_0, BF16/);
  const absent = await failure(pulled(`hf://${REPOSITORY}/other.gguf`));
  assert.is(absent.code, 'NOT_FOUND');
  assert.match(absent.message, /has no file other\.gguf; its models are tiny-BF16\.gguf, /);
  hub.files.clear();
  hub.files.set('model.safetensors', MODEL);
  assert.match((await failure(pulled())).message, /has no GGUF or \.apr model; found safetensors/);
});

test('a split model comes whole', async () => {
  hub.files.clear();
  const parts = [1, 2, 3].map((i) => `sub dir/big-Q8_0-0000${i}-of-00003.gguf`);
  for (const [i, name] of parts.entries()) hub.files.set(name, Buffer.concat([MODEL, Buffer.of(i)]));
  const steps: PullProgress[] = [];
  const model = await pulled(`hf://${REPOSITORY}/${parts[1]}`, { onProgress: (step) => steps.push(step) });
  assert.equal(
    model.files.map(({ size }) => size),
    [1, 1, 1].map(() => MODEL.length + 1),
  );
  assert.match(model.path, /sub dir.big-Q8_0-00001-of-00003\.gguf$/);
  assert.equal([steps.at(-1)!.bytes, steps.at(-1)!.total, steps.at(-1)!.number], [model.size, model.size, 3]);
  assert.is(listHubCache(settings).length, 1);
  assert.is(await removeModel(settings, listHubCache(settings)[0]!), model.size);
  assert.equal(readdirSync(settings.hubCache), ['.locks']);
  hub.files.delete(parts[2]!);
  assert.match((await failure(pulled())).message, /found parts of a split GGUF model, and not all of them/);
});

test('rm takes the bytes only when nothing else links to them', async () => {
  hub.files.set('copy-Q8_0.gguf', MODEL);
  await pulled();
  const copy = await pulled(`hf://${REPOSITORY}:Q8_0`);
  const models = listHubCache(settings);
  // Two names of the same bytes are one entry; the other name goes with its own reference.
  assert.is(models.length, 1);
  assert.is(
    await removeModel(settings, cachedModel(referenceOf(`hf://${REPOSITORY}:Q4_K_M`, settings)!, settings)!),
    0,
  );
  assert.equal(readFileSync(copy.path), MODEL);
  assert.is(
    await removeModel(settings, cachedModel(referenceOf(`hf://${REPOSITORY}`, settings)!, settings)!),
    MODEL.length,
  );
  assert.is(existsSync(join(settings.hubCache, FOLDER)), false);
});

test('rm leaves what other tools keep in the same repository', async () => {
  const { path } = await pulled();
  writeFileSync(join(dirname(path), 'config.json'), '{}');
  await removeModel(settings, listHubCache(settings)[0]!);
  assert.equal(readdirSync(dirname(path)), ['config.json']);
  assert.is(existsSync(join(settings.hubCache, FOLDER, 'refs', 'main')), true);
});

test('any address: fetched, kept, found again, removed', async () => {
  const address = `${hub.endpoint}/files/${NAME}`;
  hub.fault = times(1, cutAfter(70_000));
  const model = await pulled(address);
  assert.equal(hub.ranges[0], 'all');
  assert.match(hub.ranges[1]!, /^bytes=\d+-$/);
  assert.equal(readFileSync(model.path), MODEL);
  assert.equal([model.reference, model.quantisation, model.commit], [address, 'Q4_K_M', null]);
  assert.equal(model.path.startsWith(settings.urlCache), true);
  hub.requests.length = 0;
  assert.is((await pulled(address)).received, 0);
  assert.equal(hub.requests, []);
  assert.equal(
    listUrlCache(settings).map(({ reference }) => reference),
    [address],
  );
  assert.is(await removeModel(settings, listUrlCache(settings)[0]!), MODEL.length);
  assert.equal(listUrlCache(settings), []);
  assert.equal(readdirSync(join(settings.urlCache, 'urls')), []);
});

test('an address whose file changed meanwhile is not continued', async () => {
  const address = `${hub.endpoint}/files/${NAME}`;
  hub.fault = times(1, cutAfter(70_000));
  await failure(pulled(address, { retry: { attempts: 1 } }));
  const other = Buffer.from(readFileSync(join(FIXTURES, 'tiny-qwen2-bf16.gguf')));
  hub.files.set(NAME, other);
  const { path } = await pulled(address);
  assert.equal(readFileSync(path), other);
});

test('an address that answers with a page, nothing, or not at all', async () => {
  const address = `${hub.endpoint}/files/${NAME}`;
  hub.fault = (_, response) => {
    response.end('<html><body>404 but friendly</body></html>');
    return true;
  };
  assert.match((await failure(pulled(address))).message, /is no model: it is an HTML page/);
  hub.fault = (_, response) => {
    response.setHeader('content-length', 0);
    response.end();
    return true;
  };
  assert.match((await failure(pulled(address))).message, /the server sent an empty file/);
  hub.fault = undefined;
  const absent = await failure(pulled(`${hub.endpoint}/files/absent.gguf`));
  assert.is(absent.code, 'NOT_FOUND');
  const closed = await failure(pulled('http://127.0.0.1:9/model.gguf'));
  assert.is(closed.code, 'IO');
  assert.match(closed.message, /the connection to 127\.0\.0\.1:9 failed .*3 times in a row/);
  assert.equal(listUrlCache(settings), []);
});

test('all parts of a split model at an address', async () => {
  for (const i of [1, 2]) hub.files.set(`big-0000${i}-of-00002.gguf`, Buffer.concat([MODEL, Buffer.of(i)]));
  const model = await pulled(`${hub.endpoint}/files/big-00002-of-00002.gguf`);
  assert.is(model.files.length, 2);
  assert.match(model.path, /big-00001-of-00002\.gguf$/);
  assert.is((await pulled(`${hub.endpoint}/files/big-00001-of-00002.gguf`)).received, 0);
});

test('settings come from the variables that the hub has', () => {
  const home = mkdtempSync(join(tmpdir(), 'apr-home-'));
  writeFileSync(join(home, 'token'), 'hf_kept\n');
  const { hubCache, endpoint, token, offline } = hubSettings({ HF_HOME: home });
  assert.equal([hubCache, endpoint, token, offline], [join(home, 'hub'), 'https://huggingface.co', 'hf_kept', false]);
  const mirror = hubSettings({ HF_HOME: home, HF_ENDPOINT: 'http://mirror:8080/hf/', HF_HUB_OFFLINE: '1' });
  // The token that was kept for the hub is not for a mirror.
  assert.equal([mirror.endpoint, mirror.token, mirror.offline], ['http://mirror:8080/hf', undefined, true]);
  assert.is(hubSettings({ HF_ENDPOINT: 'http://mirror', HF_TOKEN: 'hf_x', HF_HUB_CACHE: '/x' }).token, 'hf_x');
  assert.is(hubSettings({ XDG_CACHE_HOME: '/c' }).hubCache, join('/c', 'huggingface', 'hub'));
  assert.throws(() => hubSettings({ HF_ENDPOINT: 'mirror' }), /HF_ENDPOINT is "mirror", which is no address/);
  assert.throws(() => hubSettings({ HF_TOKEN: 'hf a\nb' }), /HF_TOKEN is no token/);
  rmSync(home, { recursive: true });
});

test.run();
