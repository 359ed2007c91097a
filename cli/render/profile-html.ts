/** The picture of a profile: where each phase went, which operations, which layers, and what the threads did in a pass. */

import type { Timeline, TraceSummary } from '../../src/index.ts';
import type { PhaseDocument, ProfileDocument } from '../commands/profile.ts';
import { escapeHtml, heatColour, htmlPage } from './html.ts';
import { partLabel } from './trace-table.ts';

const WIDTH = 1000;

/** Parts in the order of a pass, each with a colour of its own: hues go round, neighbours differ in lightness. */
const PARTS = [
  ['embed', 'embedding'],
  ['attn_norm', 'attention norm'],
  ['qkv', 'Q, K, V'],
  ['qk_norm', 'Q/K norm'],
  ['rope', 'RoPE'],
  ['attention', 'attention'],
  ['attn_output', 'attention output'],
  ['ffn_norm', 'FFN norm'],
  ['router', 'router'],
  ['gate_up', 'gate, up'],
  ['down', 'down'],
  ['output_norm', 'output norm'],
  ['lm_head', 'head'],
] as const;

function colourOf(part: string): string {
  const index = PARTS.findIndex(([name]) => name === part);
  return index === -1 ? 'var(--soft)' : `hsl(${Math.round((index * 360) / PARTS.length)} 60% ${index % 2 ? 62 : 45}%)`;
}

export function profilePage(
  document: ProfileDocument,
  timelines: readonly Timeline[],
  layers: TraceSummary['layers'],
): string {
  const { model, architecture, backend, prompt_tokens, generated_tokens, read_bandwidth, threads } = document;
  const facts =
    `${architecture}; backend ${backend.ran} (${backend.kernel}), ${backend.threads} threads; ` +
    `${prompt_tokens} tokens in, ${generated_tokens} out`;
  const limit =
    read_bandwidth === null
      ? 'The read bandwidth of the machine was not measured.'
      : `The machine reads ${read_bandwidth.gb_per_sec.toFixed(1)} GB/s with as many threads.`;
  const used = new Set(timelines.flatMap((timeline) => timeline.threads.flat().map(({ part }) => part as string)));
  const sections = [
    `<h1>${escapeHtml(model)}</h1>`,
    `<p class="soft">${escapeHtml(facts)}</p>`,
    ...document.warnings.map((warning) => `<p class="say bad"><span>${escapeHtml(warning)}</span></p>`),
    ...(['prefill', 'decode'] as const).flatMap((phase) => phaseSection(phase, document[phase])),
    `<p class="soft">${limit}</p>`,
    '<h2>Threads</h2>',
    table(
      ['thread', 'busy', 'waiting', ''],
      threads.map(({ thread, busy_us, waiting_us }) => [
        String(thread),
        milliseconds(busy_us),
        milliseconds(waiting_us),
        bar(busy_us / (busy_us + waiting_us)),
      ]),
    ),
    ...timelines.flatMap((timeline) => [
      `<h2>The last pass of ${timeline.phase}: ${timeline.rows} ${timeline.rows === 1 ? 'row' : 'rows'} at position ${timeline.position}, ${milliseconds(timeline.duration_us)}</h2>`,
      '<p class="soft">Every thread from left to right; it waits where nothing is drawn. Point at a slice for its figures.</p>',
      `<div class="wide">${timelineSvg(timeline)}</div>`,
    ]),
    `<p>${PARTS.filter(([name]) => used.has(name))
      .map(([name, label]) => `<span style="color:${colourOf(name)}">&#9632;</span>&nbsp;${label}`)
      .join(' &ensp; ')}</p>`,
    '<h2>Layers</h2>',
    '<p class="soft">Time of each over all passes; brighter took longer.</p>',
    layerTable(layers),
  ];
  return htmlPage(`apr profile ${model}`, sections.join('\n'));
}

function phaseSection(name: string, phase: PhaseDocument): string[] {
  const { total_us, tokens, tok_per_sec, gb_per_sec, bandwidth_share, other_us, operations } = phase;
  if (total_us === 0) return [];
  const share = bandwidth_share === null ? '' : `, ${percent(bandwidth_share)} of what can be read`;
  const rows = operations.map(
    ({ operation, type, calls, total_us: us, mean_us, share: part, gb_per_sec: rate, ...rest }) => [
      escapeHtml(type === null ? partLabel(operation) : `${operation} ${type}`),
      String(calls),
      milliseconds(us),
      percent(part),
      `${mean_us.toFixed(1)} µs`,
      rate === null ? '' : rate.toFixed(2),
      rest.bandwidth_share === null ? '' : percent(rest.bandwidth_share),
      bar(part),
    ],
  );
  rows.push(['other', '', milliseconds(other_us), percent(other_us / total_us), '', '', '', bar(other_us / total_us)]);
  return [
    `<h2>${name}: ${milliseconds(total_us)}, ${tokens} tokens, ${tok_per_sec.toFixed(1)} tok/s</h2>`,
    `<p class="soft">Weights are read at ${gb_per_sec.toFixed(2)} GB/s${share}.</p>`,
    `<div class="wide">${table(['operation', 'calls', 'total', 'share', 'mean', 'GB/s', 'of read', ''], rows)}</div>`,
  ];
}

function timelineSvg({ threads, duration_us }: Timeline): string {
  const [left, height] = [64, 26];
  const scale = WIDTH / duration_us;
  const parts: string[] = [];
  threads.forEach((slices, thread) => {
    const y = 4 + thread * (height + 6);
    parts.push(
      `<text x="${left - 8}" y="${y + 17}" text-anchor="end">thread ${thread}</text>`,
      `<rect x="${left}" y="${y}" width="${WIDTH}" height="${height}" fill="var(--panel)"/>`,
    );
    for (const { kernel, part, layer, start_us, duration_us: us } of slices) {
      // What would not fill a fifth of a pixel is not drawn.
      if (us * scale < 0.2) continue;
      const where = layer === undefined ? '' : `layer ${layer}, `;
      parts.push(
        `<rect x="${(left + start_us * scale).toFixed(2)}" y="${y}" width="${(us * scale).toFixed(2)}" height="${height}" ` +
          `fill="${colourOf(part)}"><title>${escapeHtml(`${where}${part}: ${kernel}, ${us.toFixed(1)} µs`)}</title></rect>`,
      );
    }
  });
  const bottom = 4 + threads.length * (height + 6);
  for (let tick = 0; tick <= 4; tick++) {
    const x = left + (tick * WIDTH) / 4;
    const anchor = tick === 4 ? 'end' : tick === 0 ? 'start' : 'middle';
    parts.push(
      `<text x="${x}" y="${bottom + 12}" text-anchor="${anchor}">${milliseconds((tick * duration_us) / 4)}</text>`,
    );
  }
  const [w, h] = [left + WIDTH, bottom + 18];
  return (
    `<svg role="img" aria-label="Threads over time" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">` +
    `${parts.join('')}</svg>`
  );
}

function layerTable(layers: TraceSummary['layers']): string {
  const keys = ['prefill_attention_us', 'prefill_ffn_us', 'decode_attention_us', 'decode_ffn_us'] as const;
  const most = keys.map((key) => Math.max(...layers.map((layer) => layer[key])));
  const rows = layers.map((layer) => {
    const cells = keys.map((key, column) => {
      const { fill, text } = heatColour(most[column] ? layer[key] / most[column] : 0);
      return `<td style="background:${fill};color:${text}">${milliseconds(layer[key])}</td>`;
    });
    return `<tr><td>${layer.layer}</td>${cells.join('')}</tr>`;
  });
  const head = ['layer', 'prefill attention', 'prefill FFN', 'decode attention', 'decode FFN'];
  return `<table><tr>${head.map((cell) => `<th>${cell}</th>`).join('')}</tr>${rows.join('')}</table>`;
}

/** @param rows HTML of the cells */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<table>${line(head, 'th')}${rows.map((row) => line(row, 'td')).join('')}</table>`;
}

function bar(share: number): string {
  const width = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0)) * 160;
  return `<svg width="160" height="10"><rect width="${width.toFixed(1)}" height="10" fill="var(--one)"/></svg>`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function milliseconds(us: number): string {
  return `${(us / 1000).toFixed(us < 1000 ? 3 : 2)} ms`;
}
