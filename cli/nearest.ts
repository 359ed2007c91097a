/** The candidate that a mistyped word was most likely meant to be; undefined when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.slice(0, 64).toLowerCase();
  const letters = typed.replace(/^-+/, '').length;
  if (letters === 0) return undefined;
  // `--temp` is short for one option only: then that is it.
  const longer = candidates.filter((candidate) => letters >= 3 && candidate.startsWith(typed));
  if (longer.length === 1) return longer[0];
  let best: string | undefined;
  // Up to a third of the letters may be wrong, and one always may.
  let least = Math.max(1, Math.floor(letters / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(typed, candidate);
    if (distance < least && distance < candidate.length) [best, least] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, substitutions and swaps of neighbours between two words (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    const above = rows[i - 1] as number[];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, rows[i - 2]![j - 2]! + 1);
      row.push(cost);
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
