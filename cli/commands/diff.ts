/** `apr diff A B` */

import { AprError } from '../../src/errors.ts';
import type { DiffOptions, MetadataDifference, ModelDiff, TensorDifference } from '../../src/index.ts';
import type { Environment } from '../environment.ts';
import { type OptionValues, quote } from '../options.ts';
import type { OutputForm } from '../render/error.ts';
import { jsonLine } from '../render/json.ts';
import { type Style, styleOf } from '../render/style.ts';
import { columns } from '../render/table.ts';
import { visibleLine, write } from '../render/terminal.ts';
import { plural, showScalar, showShape, showValue } from '../render/units.ts';
import { resolveSource, withAdvice } from '../source.ts';
import type { DIFF_OPTIONS } from './diff-options.ts';

/** As diff and cmp have it. */
const DIFFERENT = 1;
const LONGEST_VALUE = 60;

/**
 * @returns the exit status: 0 when the files are the same in what was compared, 1 when they differ
 * @throws AprError for files that cannot be read
 */
export async function diff(
  positionals: readonly string[],
  values: OptionValues<typeof DIFF_OPTIONS>,
  form: OutputForm,
  { stdout, stderr }: Environment,
): Promise<number> {
  const [a, b, surplus] = positionals;
  if (a === undefined || b === undefined || surplus !== undefined) {
    const message = `found ${plural(positionals.length, 'argument')}, expected two model files: apr diff A B`;
    throw new AprError('USAGE', message, { found: positionals.length, expected: 2 });
  }
  if (values['no-values'] && values.threshold !== undefined) {
    const message = '--threshold needs the values, and --no-values leaves them out; give one of them';
    throw new AprError('USAGE', message);
  }
  const progress = stderr.isTTY === true && values.quiet !== true;
  const options: DiffOptions = { metadata: values['no-metadata'] !== true, values: values['no-values'] !== true };
  if (values.filter !== undefined) options.filter = values.filter;
  if (values.threshold !== undefined) options.threshold = values.threshold;
  if (progress) options.onProgress = (done, total) => stderr.write(`\rcomparing tensor ${done + 1} of ${total}`);
  const { diffModels } = await import('../../src/index.ts');
  const [pathA, pathB] = [await resolveSource(a, values, { stderr }), await resolveSource(b, values, { stderr })];
  let result: ModelDiff;
  try {
    result = await diffModels(pathA, pathB, options);
  } catch (error) {
    const isSecond = error instanceof AprError && error.details.path === pathB;
    throw withAdvice(error, isSecond ? b : a);
  } finally {
    if (progress) stderr.write('\r\x1b[2K');
  }
  const status = result.same ? 0 : DIFFERENT;
  if (form === 'json') await write(stdout, jsonLine({ ...result, a, b }));
  else if (!values.quiet) {
    const lines = report(result, values.threshold, values.filter, styleOf(stdout));
    await write(stdout, lines.map((line) => `${line}\n`).join(''));
  }
  return status;
}

function report(result: ModelDiff, threshold: number | undefined, filter: string | undefined, style: Style): string[] {
  const { metadata, tensors, compared } = result;
  const lines: string[] = [];
  if (metadata.length > 0) lines.push(style.bold('  metadata'), ...metadata.map((one) => metadataLine(one, style)));
  if (tensors.length > 0) lines.push(...tensorLines(tensors, style));
  const counts = [
    ...(metadata.length > 0 ? [plural(metadata.length, 'metadata key')] : []),
    ...(tensors.length > 0 ? [`${tensors.length} of ${plural(compared, 'tensor')}`] : []),
  ];
  const measured = tensors.filter(({ distance }) => distance !== null);
  const worst = measured.reduce<TensorDifference | undefined>(
    (least, one) => (least === undefined || one.distance!.cosine < least.distance!.cosine ? one : least),
    undefined,
  );
  if (filter !== undefined && compared === 0) lines.push(`no tensor has a name like ${quote(filter)}`);
  if (counts.length > 0) {
    const lowest =
      worst === undefined ? '' : `; the lowest cosine is ${showCosine(worst.distance!.cosine)}, of ${worst.name}`;
    lines.push(visibleLine(`different: ${counts.join(' and ')}${lowest}`));
  } else {
    const how = threshold === undefined ? 'the same' : `the same by --threshold ${threshold}`;
    lines.push(`${how}: ${plural(compared, 'tensor')}`);
  }
  return lines;
}

/** Minus is what A has alone, plus what B has alone, a tilde what both have and differently. */
function metadataLine({ key, a, b, elements }: MetadataDifference, style: Style): string {
  const name = visibleLine(key);
  const show = (value: MetadataDifference['a']): string => visibleLine(cut(value === null ? '' : showScalar(value)));
  if (b === null) return style.colour(5, `- ${name}  ${show(a)}`);
  if (a === null) return style.colour(3, `+ ${name}  ${show(b)}`);
  if (elements === undefined) return `~ ${name}  ${show(a)} → ${show(b)}`;
  const { count, first } = elements;
  const example = visibleLine(`${cut(elements.a)} → ${cut(elements.b)}`);
  return `~ ${name}  ${count} of ${a} differ, the first at ${first}: ${example}`;
}

const HEADINGS = ['tensor', 'A', 'B', 'shape', 'cosine', 'relative L2', 'largest difference', 'values that differ'];
const NUMBERS = [4, 5, 6, 7];

function tensorLines(tensors: readonly TensorDifference[], style: Style): string[] {
  const rows = tensors.map(({ name, reason, a, b, distance }) => {
    const sign = a === null ? '+' : b === null ? '-' : '~';
    const side = (one: TensorDifference['a']): string =>
      one === null ? '' : reason === 'shape' ? `${one.dtype} ${showShape(one.shape)}` : one.dtype;
    const shape = reason === 'shape' ? '' : showShape((a ?? b)!.shape);
    return [`${sign} ${visibleLine(name)}`, side(a), side(b), shape, ...measured(distance)];
  });
  // Headings of columns that are empty are left out.
  const used = HEADINGS.slice(0, Math.max(...rows.map(({ length }) => length)));
  const [head, ...lines] = columns([used.map((text, i) => (i === 0 ? `  ${text}` : text)), ...rows], NUMBERS);
  return [
    style.bold(head!),
    ...lines.map((line, i) => {
      const { a, b } = tensors[i]!;
      return a === null ? style.colour(3, line) : b === null ? style.colour(5, line) : line;
    }),
  ];
}

function measured(distance: TensorDifference['distance']): string[] {
  if (distance === null) return [];
  const { cosine, relative_l2, largest_difference, different, not_finite } = distance;
  return [
    showCosine(cosine),
    relative_l2 === null ? '' : showValue(relative_l2),
    showValue(largest_difference),
    `${different}${not_finite > 0 ? ` (${not_finite} NaN or infinite)` : ''}`,
  ];
}

/** Seven digits: what is not quite 1 must not look as if it were. */
function showCosine(cosine: number): string {
  const text = cosine.toFixed(7);
  return text === '1.0000000' && cosine < 1 ? 'just below 1' : text;
}

function cut(text: string): string {
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}
