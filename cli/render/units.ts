/** Numbers as people read them. */

/** Decimal units, as file managers and shops use them. */
export function showBytes(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(2)} GB`;
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(2)} MB`;
  if (bytes >= 1e4) return `${(bytes / 1e3).toFixed(1)} kB`;
  return `${bytes} bytes`;
}

/** Parameters and the like: 7.61 M, 1.54 B. */
export function showCount(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} B`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(2)} M`;
  if (count >= 1e4) return `${(count / 1e3).toFixed(1)} k`;
  return String(count);
}

/** A value of a tensor in few characters: 0.0123, -1.2e-7, 0, NaN. */
export function showValue(value: number, digits = 4): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e-4 && size < 1e6 ? Number(value.toPrecision(digits)).toString() : value.toExponential(digits - 2);
}

/** Sizes of a tensor, row length first. */
export function showShape(shape: readonly number[]): string {
  return `[${shape.join(' × ')}]`;
}

/** `1 tensor`, `2 tensors`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The shortest decimal that is the same f32, for what the file keeps as one: 1e-6, and not 9.999999974752427e-7. */
export function showScalar(value: string | number | boolean): string {
  if (typeof value !== 'number' || Math.fround(value) !== value) return JSON.stringify(value);
  const short = Number(value.toPrecision(7));
  return String(Math.fround(short) === value ? short : value);
}
