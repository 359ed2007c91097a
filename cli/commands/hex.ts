/** `apr hex SOURCE TENSOR` */

import { AprError } from '../../src/errors.ts';
import type { BlockListing, ReadBlocksOptions, TensorBlock } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import { nearest } from '../nearest.ts';
import { type OptionValues, quote } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { type Style, styleOf } from '../render/style.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { plural, showShape, showValue } from '../render/units.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { HEX_OPTIONS } from './hex-options.ts';

const USAGE = 'apr hex SOURCE TENSOR';
const BYTES_A_LINE = 16;
const VALUES_A_LINE = 16;

/** @throws AprError for everything that goes wrong */
export async function hex(
  positionals: readonly string[],
  values: OptionValues<typeof HEX_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<void> {
  const [source, tensor] = readArguments(positionals, values.tensor);
  if (values.block !== undefined && values.row !== undefined) {
    throw new AprError('USAGE', '--block and --row exclude each other; give one of them');
  }
  const options: ReadBlocksOptions = {
    ...(values.block === undefined ? {} : { block: values.block }),
    ...(values.row === undefined ? {} : { row: values.row }),
    ...(values.limit === undefined ? {} : { limit: values.limit }),
  };
  const { listTensors, readBlocks } = await import('../../src/index.ts');
  const path = await resolveSource(source, values, { stderr });
  let listing: BlockListing;
  try {
    listing = await readBlocks(path, tensor, options);
  } catch (error) {
    if (!(error instanceof AprError) || error.code !== 'NOT_FOUND' || error.details.tensor === undefined) {
      throw withAdvice(error, source);
    }
    const names = (await listTensors(path)).tensors.map(({ name }) => name);
    const near = nearest(tensor, names) ?? names.find((name) => name.includes(tensor));
    const advice = near === undefined ? `"apr tensors ${source}" lists them` : `did you mean ${quote(near)}?`;
    throw new AprError('NOT_FOUND', `${error.message}; ${advice}`, error.details, { cause: error });
  }
  if (form === 'json') {
    await write(stdout, jsonLine({ ...listing, model: source }));
    return;
  }
  const style = styleOf(stdout);
  const { dtype, shape, block_count, block_size, block_bytes } = listing;
  const blocks = `${plural(block_count, 'block')} of ${block_size} values in ${block_bytes} bytes`;
  await write(stdout, `${style.bold(visibleLine(listing.tensor))}: ${dtype} ${showShape(shape)}, ${blocks}\n`);
  for (const block of listing.blocks)
    await write(stdout, `\n${blockLines(block, values.values === true, style).join('\n')}\n`);
}

/** @throws AprError USAGE */
function readArguments(positionals: readonly string[], option: string | undefined): [source: string, tensor: string] {
  const [source, positional, ...surplus] = positionals;
  if (source === undefined) throw new AprError('USAGE', `SOURCE is missing, expected ${USAGE}`);
  if (surplus.length > 0) {
    const message = `found ${positionals.length} arguments, expected SOURCE and the name of one tensor: ${USAGE}`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 2 });
  }
  if (positional !== undefined && option !== undefined) {
    throw new AprError('USAGE', `the tensor is given as ${quote(positional)} and by --tensor, expected one of them`);
  }
  const tensor = positional ?? option;
  if (tensor === undefined) {
    throw new AprError('USAGE', `TENSOR is missing, expected ${USAGE}; "apr tensors ${source}" lists the names`);
  }
  return [source, tensor];
}

function blockLines(block: TensorBlock, decoded: boolean, style: Style): string[] {
  const { index, row, column, offset } = block;
  return [
    style.bold(`block ${index}: row ${row}, from value ${column} on; byte ${offset} of the file`),
    ...byteLines(block, style),
    ...(block.scales === null || decoded ? valueLines(block) : groupLines(block, style)),
  ];
}

/** Sixteen bytes a line, each field beginning a line of its own. */
function byteLines({ hex: digits, fields }: TensorBlock, style: Style): string[] {
  const widest = Math.max(...fields.map(({ name }) => name.length));
  return fields.flatMap(({ name, offset, bytes, value }, i) => {
    const lines: string[] = [];
    for (let at = 0; at < bytes; at += BYTES_A_LINE) {
      const end = Math.min(bytes, at + BYTES_A_LINE);
      const shown = digits.slice(2 * (offset + at), 2 * (offset + end)).replace(/..(?=.)/g, '$& ');
      const label = at === 0 ? name : '';
      const decoded = at === 0 && value !== undefined ? `  = ${showValue(value)}` : '';
      const place = style.dim((offset + at).toString(16).padStart(4, '0'));
      lines.push(`  ${place}  ${style.colour(i, label.padEnd(widest))}  ${style.colour(i, shown)}${decoded}`);
    }
    return lines;
  });
}

/** A group's scale and offset, and its quants below it. */
function groupLines(block: TensorBlock, style: Style): string[] {
  const { scales, offsets, quants, group_size: size, scale_codes, minimum_codes } = block;
  const list = quants ?? [];
  const width = Math.max(...list.map((quant) => String(quant).length));
  const stored = (codes: readonly number[] | null, group: number): string =>
    codes === null ? '' : ` (stored ${codes[group]})`;
  const group = size ?? list.length;
  return (scales ?? []).flatMap((scale, g) => {
    const offset = offsets === null ? '' : ` ${sign(offsets[g]!)} ${showValue(Math.abs(offsets[g]!))}`;
    const head = `  values ${g * group} to ${(g + 1) * group - 1}: ${showValue(scale)}${stored(scale_codes, g)} × quant`;
    const lines = [style.dim(`${head}${offset}${offset === '' ? '' : stored(minimum_codes, g)}`)];
    for (let at = g * group; at < (g + 1) * group; at += VALUES_A_LINE) {
      const some = list.slice(at, Math.min(at + VALUES_A_LINE, (g + 1) * group));
      lines.push(`    ${some.map((quant) => String(quant).padStart(width)).join(' ')}`);
    }
    return lines;
  });
}

function sign(offset: number): string {
  return offset < 0 ? '−' : '+';
}

function valueLines({ values }: TensorBlock): string[] {
  if (values === null) return ['  (there is no decoder for this type)'];
  const shown = values.map((value) => showValue(value, 6));
  const width = Math.max(...shown.map(({ length }) => length));
  const lines: string[] = [];
  for (let at = 0; at < shown.length; at += VALUES_A_LINE / 2) {
    lines.push(
      `    ${shown
        .slice(at, at + VALUES_A_LINE / 2)
        .map((value) => value.padStart(width))
        .join(' ')}`,
    );
  }
  return lines;
}
