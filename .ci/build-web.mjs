// Makes dist/web/ from dist/: all modules that the web entry and its Workers reach, with imports that a browser resolves
// by itself. Import maps do not reach into Workers, so that names of packages have to become paths.

import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ENTRIES = ['src/web.js', 'workers/web-engine.js', 'workers/web-kernel.js'];
const KERNELS = ['simd-shared', 'simd-plain', 'relaxed-shared', 'relaxed-plain'];
/** The ES module of each package that the entries import. */
const PACKAGES = {
  comlink: 'comlink/dist/esm/comlink.mjs',
};
const IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"\n]+)\2/g;

/**
 * @param {string} root folder with dist/ and node_modules/
 * @param {string} target is replaced
 * @returns {string[]} the modules, relative to the target
 */
export function buildWeb(root, target) {
  // Beside it first: a page that is open goes on finding its modules.
  const made = `${target}.new`;
  rmSync(made, { recursive: true, force: true });
  const modules = fillWeb(root, made);
  rmSync(target, { recursive: true, force: true });
  renameSync(made, target);
  return modules;
}

function fillWeb(root, target) {
  const dist = join(root, 'dist');
  const written = new Map();
  /** Copies a module to its place and everything that it imports; returns the place. */
  const add = (source, place) => {
    if (written.has(place)) return place;
    if (!existsSync(source)) throw new Error(`${source} is missing; run npm run build`);
    written.set(place, true);
    const text = readFileSync(source, 'utf8').replace(IMPORT, (whole, before, quote, specifier) => {
      if (specifier.startsWith('.')) {
        const imported = resolve(dirname(source), specifier);
        // What a package imports stays beside it.
        const inside = relative(dist, imported);
        add(imported, inside.startsWith('..') ? join(dirname(place), specifier) : inside);
        return whole;
      }
      const file = PACKAGES[specifier];
      if (file === undefined) throw new Error(`${source} imports "${specifier}", which a browser does not have`);
      const copy = add(join(root, 'node_modules', file), join('packages', file));
      let path = relative(dirname(place), copy).replaceAll('\\', '/');
      if (!path.startsWith('.')) path = `./${path}`;
      return `${before}${quote}${path}${quote}`;
    });
    mkdirSync(dirname(join(target, place)), { recursive: true });
    // The maps of the sources stay behind.
    writeFileSync(join(target, place), text.replace(/^\/\/# sourceMappingURL=.*$/m, ''));
    return place;
  };
  for (const entry of ENTRIES) add(join(dist, entry), entry);
  writeFileSync(join(target, 'apr.js'), "export * from './src/web.js';\n");
  mkdirSync(join(target, 'assembly'));
  for (const name of KERNELS)
    copyFileSync(join(dist, 'assembly', `${name}.wasm`), join(target, 'assembly', `${name}.wasm`));
  return [...written.keys(), 'apr.js'];
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  buildWeb(root, join(root, 'dist', 'web'));
}
