/** The task of every kernel thread (a Piscina worker): loads weights, then runs passes, one session at a time. */

import { createKernelWorker } from '../src/backends/wasm/worker.ts';
import { openReader } from '../src/platform/node/reader.ts';

export default createKernelWorker(openReader);
