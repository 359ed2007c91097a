/** Columns of text. */

/** Rows with every column as wide as its widest cell; `right` names the columns that are numbers. */
export function columns(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths = columnWidths(rows);
  return rows.map((row) => line(row, widths, right));
}

export function columnWidths(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  }
  return widths;
}

/** One row, two spaces between columns, and no space at its end. */
export function line(row: readonly string[], widths: readonly number[], right: readonly number[] = []): string {
  return row
    .map((cell, i) => (right.includes(i) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
    .join('  ')
    .trimEnd();
}
