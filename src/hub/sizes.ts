/** Bytes as people read them, in decimal units. */
export function showSize(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(2)} GB`;
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)} MB`;
  return bytes >= 1e4 ? `${(bytes / 1e3).toFixed(0)} kB` : `${bytes} bytes`;
}
