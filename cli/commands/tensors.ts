/** `apr tensors SOURCE` */

import type { ListTensorsOptions, TensorEntry, TensorListing } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import { type OptionValues, quote } from '../options.ts';
import { onlySource } from '../positionals.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { styleOf } from '../render/style.ts';
import { columnWidths, line } from '../render/table.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { plural, showBytes, showShape, showValue } from '../render/units.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { TENSORS_OPTIONS } from './tensors-options.ts';

const HEADINGS = ['tensor', 'type', 'shape', 'bytes', 'offset'] as const;
const STATISTICS = ['least', 'most', 'mean', 'deviation', 'zeros', 'NaN, Inf'] as const;
const WIDEST_STATISTICS = [10, 10, 10, 10, 7, 8] as const;
const NUMBERS = [3, 4, 5, 6, 7, 8, 9, 10];

/** @throws AprError for a file whose header cannot be read */
export async function tensors(
  positionals: readonly string[],
  values: OptionValues<typeof TENSORS_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<void> {
  const source = onlySource(positionals, 'apr tensors SOURCE');
  const { listTensors } = await import('../../src/index.ts');
  const path = await resolveSource(source, values, { stderr });
  const chosen: ListTensorsOptions = {
    ...(values.filter === undefined ? {} : { filter: values.filter }),
    ...(values.limit === undefined ? {} : { limit: values.limit }),
  };
  const list = async (options: ListTensorsOptions): Promise<TensorListing> => {
    try {
      return await listTensors(path, options);
    } catch (error) {
      throw withAdvice(error, source);
    }
  };
  const stats = values.stats === true;
  if (form === 'json') {
    const listing = await list({ ...chosen, stats });
    await write(stdout, jsonLine({ ...listing, model: source }));
    return;
  }
  const listing = await list(chosen);
  const style = styleOf(stdout);
  const widths = columnWidths([HEADINGS, ...listing.tensors.map(cells)]);
  const headings = [...HEADINGS, ...(stats ? STATISTICS : [])];
  const all = stats ? [...widths, ...WIDEST_STATISTICS] : widths;
  const print = (row: readonly string[]): string => line(row, all, NUMBERS);
  if (listing.tensors.length > 0) await write(stdout, `${style.bold(print(headings))}\n`);
  if (stats) {
    // Reading takes a while: each line comes when it is known.
    const written: Promise<void>[] = [];
    await list({
      ...chosen,
      stats,
      onTensor: (tensor) => written.push(write(stdout, `${print([...cells(tensor), ...statistics(tensor)])}\n`)),
    });
    await Promise.all(written);
  } else {
    await write(stdout, listing.tensors.map((tensor) => `${print(cells(tensor))}\n`).join(''));
  }
  if (values.quiet) return;
  if (listing.matched === 0 && values.filter !== undefined) {
    const whole = plural(listing.tensor_count, 'tensor');
    stderr.write(`no name is like ${quote(values.filter)}; without --filter, ${whole} would be listed\n`);
  } else if (stderr.isTTY) stderr.write(`${summary(listing)}\n`);
}

function cells({ name, dtype, shape, size, offset, file }: TensorEntry): string[] {
  const place = file === undefined ? String(offset) : `${file}: ${offset}`;
  return [visibleLine(name), dtype, showShape(shape), String(size), visibleLine(place)];
}

function statistics({ stats, dtype }: TensorEntry): string[] {
  if (stats === undefined) return [];
  if (stats === null) return [`no decoder for ${dtype}`];
  const { min, max, mean, std, zeros, count, nan, infinite } = stats;
  const share = count === 0 ? '0 %' : `${((100 * zeros) / count).toFixed(1)} %`;
  const odd = nan + infinite === 0 ? '0' : `${nan}, ${infinite}`;
  return [...[min, max, mean, std].map((value) => showValue(value)), share, odd];
}

function summary({ tensors: listed, matched, tensor_count, total_size }: TensorListing): string {
  const whole = `${plural(tensor_count, 'tensor')}, ${showBytes(total_size)}`;
  if (listed.length === tensor_count) return whole;
  const shown = `${listed.length} shown`;
  const some = matched > listed.length && matched < tensor_count ? ` of ${matched} that match` : '';
  return `${shown}${some}, ${showBytes(listed.reduce((sum, { size }) => sum + size, 0))}; in the file ${whole}`;
}
