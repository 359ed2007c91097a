const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const;
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const;

/**
 * A date in local time in the manner of C's `strftime`, English names.
 * @throws Error for a directive that is not known
 */
export function strftime(date: Date, format: string): string {
  const pad = (value: number, width = 2): string => String(value).padStart(width, '0');
  const hour = date.getHours() % 12 || 12;
  const startOfYear = Date.UTC(date.getFullYear(), 0, 0);
  const dayOfYear = (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - startOfYear) / 86_400_000;
  const directives: Readonly<Record<string, string>> = {
    '%': '%',
    A: DAYS[date.getDay()]!,
    a: DAYS[date.getDay()]!.slice(0, 3),
    B: MONTHS[date.getMonth()]!,
    b: MONTHS[date.getMonth()]!.slice(0, 3),
    d: pad(date.getDate()),
    '-d': String(date.getDate()),
    H: pad(date.getHours()),
    I: pad(hour),
    j: pad(dayOfYear, 3),
    M: pad(date.getMinutes()),
    m: pad(date.getMonth() + 1),
    '-m': String(date.getMonth() + 1),
    p: date.getHours() < 12 ? 'AM' : 'PM',
    S: pad(date.getSeconds()),
    Y: String(date.getFullYear()),
    y: pad(date.getFullYear() % 100),
  };
  return format.replaceAll(/%(-?.)/gs, (text, name: string) => {
    const value = Object.hasOwn(directives, name) ? directives[name] : undefined;
    if (value === undefined) throw new Error(`strftime_now does not know ${text}`);
    return value;
  });
}
