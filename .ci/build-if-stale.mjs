// `npm run build`, unless dist/ is newer than everything it is made of. npm runs `prepare` a second time for the first
// `npx apr` in a clone: there is nothing to do then.

import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const INPUTS = [
  'assembly',
  'src',
  'cli',
  'workers',
  'test',
  'bench',
  'models-fixtures',
  'asconfig.json',
  'tsconfig.json',
  'package-lock.json',
  '.ci/build-web.mjs',
];
const STAMP = 'dist/.built';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

/** Time of the latest change at or below a path, removals included (they touch their folder); 0 where nothing is. */
function changed(path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => changed(join(path, name))));
}

const newest = Math.max(...INPUTS.map(changed));
if (changed(STAMP) <= newest) {
  const start = new Date();
  const npm = process.env.npm_execpath;
  const [command, args] = npm === undefined ? ['npm', ['run', 'build']] : [process.execPath, [npm, 'run', 'build']];
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
  writeFileSync(STAMP, '');
  // What changes during the build is not in it.
  utimesSync(STAMP, start, start);
}
