/** The entry of every kernel thread of a page: a dedicated Worker that gets one task a message, and answers each. */

import type { KernelTask } from '../src/backends/wasm/tasks.ts';
import { createKernelWorker } from '../src/backends/wasm/worker.ts';
import { openReader } from '../src/platform/web/reader.ts';
import { kernelReply, workerScope } from '../src/platform/web/worker-scope.ts';

const run = createKernelWorker(openReader);
const scope = workerScope();
scope.addEventListener('message', (event) => {
  void run((event as MessageEvent<KernelTask>).data).then((error) => scope.postMessage(kernelReply(error)));
});
