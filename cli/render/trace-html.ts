/** The picture of a trace: how far values spread, layer by layer, and where they part from a reference. */

import type { PlaceComparison, Statistics, Trace } from '../../src/index.ts';
import { escapeHtml, heatColour, htmlPage } from './html.ts';

/** Columns of the heat map, as far as the model has them. */
const STAGES = [
  ['attn_norm', 'attn norm'],
  ['qkv', 'QKV'],
  ['qk_norm', 'Q/K norm'],
  ['rope', 'RoPE'],
  ['attention', 'attention'],
  ['attn_out', 'attn out'],
  ['attn_residual', 'residual'],
  ['ffn_norm', 'FFN norm'],
  ['gate_up', 'gate/up'],
  ['ffn_inner', 'gated'],
  ['ffn_down', 'down'],
  ['ffn_out', 'FFN out'],
  ['output', 'output'],
] as const;

export function tracePage(trace: Trace): string {
  const { model, architecture, num_layers, hidden_dim, vocab_size, backend, encoded_tokens, tokens } = trace;
  const facts = [
    `${architecture}, ${num_layers} layers of width ${hidden_dim}, vocabulary of ${vocab_size}`,
    `backend ${backend.ran} (${backend.kernel}), ${backend.threads} threads`,
    `prompt of ${encoded_tokens.length} tokens, figures of ${tokens === 'all' ? 'all of them' : 'the last one'}`,
  ];
  const { verdict, comparison } = trace;
  const sections = [
    `<h1>${escapeHtml(model)}</h1>`,
    `<p class="soft">${escapeHtml(facts.join('; '))}</p>`,
    ...(trace.prompt === null ? [] : [`<pre>${escapeHtml(trace.prompt)}</pre>`]),
    statement(verdict.status === 'healthy', verdict.message),
    ...(comparison === undefined
      ? []
      : [
          statement(comparison.first_divergence === null, `against ${comparison.reference}: ${comparison.message}`),
          '<h2>Difference from the reference</h2>',
          '<p class="soft">Every activation in the order in which it is computed; a logarithmic scale, lower is closer.</p>',
          `<div class="wide">${divergenceCurve(trace, comparison.places)}</div>`,
        ]),
    '<h2>Spread of the values</h2>',
    '<p class="soft">Standard deviation of every stage of every layer. Point at a field for its figures.</p>',
    `<div class="wide">${stageMap(trace)}</div>`,
    stepMap(trace),
    logitsTable(trace),
  ];
  return htmlPage(`apr trace ${model}`, sections.join('\n'));
}

function statement(good: boolean, text: string): string {
  return `<p class="say ${good ? 'good' : 'bad'}"><span>${escapeHtml(text)}</span></p>`;
}

/** Stages across, layers downwards. */
function stageMap({ layers }: Trace): string {
  const columns = STAGES.filter(([name]) => layers.some((layer) => layer[name] !== undefined)).filter(
    // A dense FFN ends in its down projection: one column is enough.
    ([name]) => name !== 'ffn_down' || layers.some((layer) => layer.ffn_down !== layer.ffn_out),
  );
  return heatMap({
    label: 'Spread of the values by layer and stage',
    width: 74,
    rows: layers.map(({ layer_idx }) => String(layer_idx)),
    columns: columns.map(([, label]) => label),
    field: (row, column) => {
      const [layer, [name, label]] = [layers[row]!, columns[column]!];
      const stats = layer[name] as Statistics | undefined;
      if (stats === undefined) return undefined;
      const broken = stats.nan_count + stats.inf_count;
      return {
        std: broken > 0 ? null : stats.std,
        title: `layer ${layer.layer_idx}, ${label}: ${describe(stats)}`,
        ...(broken > 0 ? { broken: `${broken} broken` } : {}),
      };
    },
  });
}

/** Generated tokens across, the outputs of layers downwards. */
function stepMap({ generation, num_layers }: Trace): string {
  const steps = generation?.steps ?? [];
  if (steps.length === 0) return '';
  const map = heatMap({
    label: 'Spread of the outputs of the layers, token by token',
    width: Math.max(4, Math.min(74, Math.floor(1040 / steps.length))),
    rows: Array.from({ length: num_layers }, (_, layer) => String(layer)),
    columns: steps.map(({ position }) => String(position)),
    field: (row, column) => {
      const { position, output_std } = steps[column]!;
      const std = output_std[row] ?? null;
      return { std, title: `layer ${row}, position ${position}: std ${std?.toPrecision(4) ?? 'none'}` };
    },
  });
  return (
    '<h2>Spread while generating</h2><p class="soft">Standard deviation of the output of every layer, at the position ' +
    `of every token that went in.</p><div class="wide">${map}</div>`
  );
}

interface HeatMap {
  readonly label: string;
  /** Of a field, in pixels. */
  readonly width: number;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  /** Undefined leaves the field empty; a std of null is shown as broken. */
  field(row: number, column: number): { std: number | null; title: string; broken?: string } | undefined;
}

/** Wide and high enough for a number in each field. */
const NUMBER_WIDTH = 52;
const NUMBER_HEIGHT = 20;

function heatMap({ label, width, rows, columns, field }: HeatMap): string {
  const height = rows.length <= 48 ? NUMBER_HEIGHT : 11;
  const [left, top] = [34, 20];
  const grid = rows.map((_, row) => columns.map((_, column) => field(row, column)));
  const logs = grid.flatMap((fields) => fields.map((found) => logOf(found?.std))).filter(Number.isFinite);
  const least = logs.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const numbers = width >= NUMBER_WIDTH && height === NUMBER_HEIGHT;
  const parts: string[] = [];
  const every = Math.ceil(30 / width);
  columns.forEach((name, i) => {
    if (i % every !== 0) return;
    parts.push(`<text x="${left + (i + 0.5) * width}" y="${top - 6}" text-anchor="middle">${name}</text>`);
  });
  grid.forEach((fields, row) => {
    const y = top + row * height;
    if (height === NUMBER_HEIGHT || row % 5 === 0) {
      parts.push(`<text x="${left - 6}" y="${y + height / 2 + 4}" text-anchor="end">${rows[row]}</text>`);
    }
    fields.forEach((found, column) => {
      if (found === undefined) return;
      const x = left + column * width;
      // All alike, or zero: no place on the scale, but not broken.
      const share = most > least ? Math.max(0, (logOf(found.std) - least) / (most - least)) : 0.5;
      const { fill, text } = found.std === null ? { fill: 'var(--bad)', text: '#fff' } : heatColour(share);
      const shown = found.broken ?? found.std?.toPrecision(3) ?? 'none';
      const number = numbers
        ? `<text x="${x + width / 2}" y="${y + 14}" text-anchor="middle" style="fill:${text}">${shown}</text>`
        : '';
      parts.push(
        `<g><title>${escapeHtml(found.title)}</title><rect x="${x}" y="${y}" width="${width - (width > 8 ? 1 : 0)}" ` +
          `height="${height - 1}" fill="${fill}"/>${number}</g>`,
      );
    });
  });
  const [w, h] = [left + columns.length * width, top + rows.length * height];
  return `${svg(w, h, label, parts)}${legend(least, most)}`;
}

function legend(least: number, most: number): string {
  if (!(most > least)) return '';
  const steps = Array.from({ length: 40 }, (_, i) => {
    const { fill } = heatColour(i / 39);
    return `<rect x="${80 + i * 5}" y="4" width="5.5" height="12" fill="${fill}"/>`;
  });
  const label = (log: number): string => (10 ** log).toPrecision(2);
  steps.push(
    `<text x="74" y="14" text-anchor="end">${label(least)}</text>`,
    `<text x="286" y="14">${label(most)}</text>`,
  );
  return svg(360, 22, 'Scale of the colours', steps);
}

const FLOOR = -9;
const CEILING = 1;

/** Relative L2 and 1 − cosine over the activations, on a logarithmic scale. */
function divergenceCurve({ comparison }: Trace, places: readonly PlaceComparison[]): string {
  if (comparison === undefined) return '';
  const [left, top, height] = [46, 26, 240];
  const step = Math.max(2, Math.min(16, 1020 / places.length));
  const width = left + places.length * step + 90;
  const y = (value: number): number => {
    const log = Math.max(FLOOR, Math.min(CEILING, logOf(value)));
    return top + ((CEILING - log) / (CEILING - FLOOR)) * height;
  };
  const x = (index: number): number => left + (index + 0.5) * step;
  const parts: string[] = [];
  for (let log = FLOOR; log <= CEILING; log += 2) {
    const at = y(10 ** log);
    parts.push(
      `<line x1="${left}" x2="${width - 90}" y1="${at}" y2="${at}" stroke="var(--line)"/>`,
      `<text x="${left - 6}" y="${at + 4}" text-anchor="end">${log === FLOOR ? '≤ ' : ''}1e${log}</text>`,
    );
  }
  parts.push(...layerBands(places, x, step, top, height));
  const curves = [
    ['--two', 'relative L2', (place: PlaceComparison) => place.relative_l2, comparison.max_l2],
    [
      '--one',
      '1 − cosine',
      (place: PlaceComparison) => (place.cosine === null ? null : 1 - place.cosine),
      1 - comparison.threshold,
    ],
  ] as const;
  curves.forEach(([colour, label, of, limit], index) => {
    const points = places.map((place, i) => ({ place, x: x(i), value: of(place) }));
    const line = points.filter(({ value }) => value !== null).map(({ x, value }) => `${round(x)},${round(y(value!))}`);
    parts.push(
      `<line x1="${left}" x2="${width - 90}" y1="${y(limit)}" y2="${y(limit)}" stroke="var(${colour})" stroke-dasharray="5 4"/>`,
      `<text x="${width - 86}" y="${y(limit) + 4 + index}" style="fill:var(${colour})">limit ${Number(limit.toPrecision(3))}</text>`,
      `<polyline points="${line.join(' ')}" fill="none" stroke="var(${colour})" stroke-width="1.5"/>`,
      `<rect x="${left + index * 110}" y="4" width="10" height="10" fill="var(${colour})"/>`,
      `<text x="${left + 15 + index * 110}" y="13">${label}</text>`,
      ...points.map(({ place, x, value }) => {
        const title = `<title>${escapeHtml(describePlace(place))}</title>`;
        const at = value === null ? top : round(y(value));
        const fill = value === null ? '--bad' : colour;
        return `<circle cx="${round(x)}" cy="${at}" r="${step > 6 ? 3 : 1.5}" fill="var(${fill})">${title}</circle>`;
      }),
    );
  });
  const first = places.findIndex(({ activation }) => activation === comparison.first_divergence?.activation);
  if (first >= 0) {
    const at = round(x(first));
    const anchor = at > width / 2 ? 'end' : 'start';
    parts.push(
      `<line x1="${at}" x2="${at}" y1="${top}" y2="${top + height}" stroke="var(--bad)" stroke-width="2"/>`,
      `<text x="${at + (anchor === 'end' ? -6 : 6)}" y="${top + 12}" text-anchor="${anchor}" style="fill:var(--bad)">` +
        `first: ${escapeHtml(places[first]!.activation)}</text>`,
    );
  }
  return svg(width, top + height + 22, 'Difference from the reference, activation by activation', parts);
}

/** A line at each layer's first activation, with its number where there is room. */
function layerBands(
  places: readonly PlaceComparison[],
  x: (index: number) => number,
  step: number,
  top: number,
  height: number,
): string[] {
  let written = Number.NEGATIVE_INFINITY;
  return places.flatMap(({ layer }, i) => {
    if (layer === places[i - 1]?.layer) return [];
    const at = round(x(i) - step / 2);
    const label = layer === null ? (i === 0 ? '' : 'head') : `layer ${layer}`;
    const room = label !== '' && at - written >= 50;
    if (room) written = at;
    return [
      `<line x1="${at}" x2="${at}" y1="${top}" y2="${top + height}" stroke="var(--line)"/>`,
      ...(room ? [`<text x="${at + 2}" y="${top + height + 14}">${label}</text>`] : []),
    ];
  });
}

function logitsTable({ logits }: Trace): string {
  if (logits.top_k.length === 0) return '';
  const rows = logits.top_k.map(
    ({ text, token_id, logit, probability }) =>
      `<tr><td>${escapeHtml(JSON.stringify(text))}</td><td>${token_id}</td><td>${logit.toFixed(3)}</td>` +
      `<td>${(100 * probability).toFixed(2)} %</td></tr>`,
  );
  return (
    '<h2>Most probable next tokens</h2><table><tr><th>token</th><th>id</th><th>logit</th><th>probability</th></tr>' +
    `${rows.join('')}</table>`
  );
}

function describe(stats: Statistics): string {
  const number = (value: number | null): string => (value === null ? 'none' : value.toPrecision(4));
  const counts = [
    [stats.nan_count, 'NaN'],
    [stats.inf_count, 'infinite'],
    [stats.zero_count, 'zero'],
  ] as const;
  return [
    `std ${number(stats.std)}`,
    `mean ${number(stats.mean)}`,
    `from ${number(stats.min)} to ${number(stats.max)}`,
    ...counts.flatMap(([count, what]) => (count > 0 ? [`${count} of ${stats.count} ${what}`] : [])),
  ].join(', ');
}

function describePlace(place: PlaceComparison): string {
  const number = (value: number | null): string => (value === null ? 'none' : value.toPrecision(4));
  const cosine = place.cosine === null ? 'none' : place.cosine.toFixed(6);
  return (
    `${place.activation}: cosine ${cosine}, relative L2 ${number(place.relative_l2)}, largest difference ` +
    `${number(place.max_difference)} (${number(place.value)}, reference ${number(place.reference)})`
  );
}

function logOf(value: number | null | undefined): number {
  return value === null || value === undefined ? Number.NaN : Math.log10(value);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function svg(width: number, height: number, label: string, parts: readonly string[]): string {
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  return `<svg width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" role="img" aria-label="${label}">${parts.join('')}</svg>`;
}
