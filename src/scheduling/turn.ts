/**
 * Lets everything else that waits in this thread have its turn: timers, signals, input. Work that does not leave the
 * thread awaits this now and then, or nobody could abort it.
 */
export function nextTurn(): Promise<void> {
  if (typeof setImmediate === 'function') return new Promise((resolve) => setImmediate(resolve));
  // Last, since browsers make nested timers wait 4 ms; but on the edge of a network there may be nothing else.
  if (typeof MessageChannel !== 'function') return new Promise((resolve) => setTimeout(resolve, 0));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
