/** Work on many items at a time, with results in the order of the items. */

export interface Limits {
  /** Items that are worked on at a time. */
  readonly running: number;
  /** Items that were taken and whose result was not: what has come to its end waits for those before it. */
  readonly taken: number;
}

/**
 * Results of `work`, in order. An item is taken only when there is room for it, also while nobody asks for results; when
 * the caller stops asking, nothing more is taken.
 * @throws what `items` throws, behind the results of all that came before; what `work` throws, in its place
 */
export async function* inOrder<Item, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
  limits: Limits,
): AsyncGenerator<Result, void, undefined> {
  const results: Promise<Result>[] = [];
  let running = 0;
  let ended = false;
  let failure: { readonly error: unknown } | undefined;
  let wake = (): void => {};
  let change = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const changed = (): void => {
    wake();
    change = new Promise((resolve) => {
      wake = resolve;
    });
  };
  const take = async (): Promise<void> => {
    try {
      for await (const item of items) {
        running++;
        const result = work(item).finally(() => {
          running--;
          changed();
        });
        // Whoever asks for it meets what goes wrong; until then it is nobody's unhandled rejection.
        result.catch(() => {});
        results.push(result);
        changed();
        while (!ended && (running >= limits.running || results.length >= limits.taken)) await change;
        if (ended) return;
      }
    } catch (error) {
      failure = { error };
    }
    ended = true;
    changed();
  };
  void take();
  try {
    for (;;) {
      const next = results[0];
      if (next !== undefined) {
        yield await next;
        results.shift();
        changed();
      } else if (ended) break;
      else await change;
    }
    if (failure !== undefined) throw failure.error;
  } finally {
    ended = true;
    changed();
  }
}
