/** The demo model that every engine test runs on. */

import { fileURLToPath } from 'node:url';

/** From dist/test/engine/ up to the repository. */
export const DEMO = fileURLToPath(new URL('../../../models-fixtures/demo-qwen3moe-q4_k_m.gguf', import.meta.url));
