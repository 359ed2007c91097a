/**
 * Lets everything else that waits in this thread have its turn: timers, signals, input. Work that does not leave the
 * thread awaits this now and then, or nobody could abort it.
 */
export function nextTurn(): Promise<void> {
  if (typeof setImmediate === 'function') return new Promise((resolve) => setImmediate(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
