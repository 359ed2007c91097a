/**
 * Says that tests cannot run here, such as where `../shared` is absent. The runner (run.ts) counts these lines; without
 * one, a file that runs no test is a failure.
 */
export function skipped(count: number, reason: string): void {
  if (!Number.isInteger(count) || count < 1) throw new RangeError(`skipped(${count}): expected how many tests`);
  process.stdout.write(`\n# skipped ${count}: ${reason.replaceAll('\n', ' ')}\n`);
}
