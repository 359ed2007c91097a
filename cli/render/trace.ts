/** A trace as tables for people. */

import type { LayerSummary, PlaceComparison, RouterSummary, Statistics, Trace } from '../../src/index.ts';

/** Stages of the short table. */
const SHORT = ['attn_norm', 'qkv', 'attn_out', 'ffn_norm', 'router', 'ffn_out', 'output'];
const MAX_EXPERTS = 8;

export function traceLines(trace: Trace): string[] {
  const { comparison, verdict, saved, generation } = trace;
  const lines = [...headLines(trace), ''];
  if (comparison !== undefined) {
    lines.push(...comparisonLines(comparison.places, comparison.first_divergence));
    if (comparison.missing.length > 0) {
      lines.push(`not in the reference: ${comparison.missing.slice(0, 8).join(', ')}${more(comparison.missing, 8)}`);
    }
  } else {
    lines.push(...statisticsLines(trace));
  }
  lines.push('');
  if (generation !== undefined) lines.push(...generationLines(trace));
  if (saved !== undefined) lines.push(`saved: ${count(saved.files, 'file')} in ${saved.folder}`);
  lines.push(`verdict: ${verdict.message}`);
  if (comparison !== undefined) lines.push(`against ${comparison.reference}: ${comparison.message}`);
  return lines;
}

function headLines({ model, architecture, num_layers, hidden_dim, vocab_size, backend, ...rest }: Trace): string[] {
  const { encoded_tokens, tokens } = rest;
  const last = encoded_tokens.length - 1;
  const about = tokens === 'all' ? 'figures of all of them' : `figures of the last one, at position ${last}`;
  return [
    `${model}: ${architecture}, ${count(num_layers, 'layer')} of width ${hidden_dim}, vocabulary of ${vocab_size}`,
    `computed by backend ${backend.ran} (${backend.kernel}), ${count(backend.threads, 'thread')}`,
    `prompt: ${count(encoded_tokens.length, 'token')}, ${about}`,
  ];
}

function statisticsLines({ embedding, layers, final_norm, logits }: Trace): string[] {
  const rows: string[] = [`${'layer'.padStart(5)}  ${'stage'.padEnd(22)}${statisticsHead()}`];
  rows.push(statisticsLine('', 'embedding', embedding));
  for (const layer of layers) {
    const short = layer.activations === undefined;
    const found: (readonly [string, Statistics | RouterSummary])[] = short
      ? SHORT.flatMap((name) => (layer[name] === undefined ? [] : [[name, layer[name] as Statistics] as const]))
      : layerActivations(layer);
    found.forEach(([name, value], i) => {
      const label = i === 0 ? String(layer.layer_idx) : '';
      rows.push('entropy' in value ? routerLine(label, value) : statisticsLine(label, name, value));
    });
  }
  rows.push(statisticsLine('', 'final_norm', final_norm), statisticsLine('', 'logits', logits));
  if (logits.top_k.length > 0) {
    const top = logits.top_k.map(
      ({ text, logit, probability }) => `${JSON.stringify(text)} ${logit.toFixed(2)} (${percent(probability)})`,
    );
    rows.push('', `top ${top.length}: ${top.join(', ')}`);
  }
  return rows;
}

function layerActivations(layer: LayerSummary): (readonly [string, Statistics | RouterSummary])[] {
  return (layer.activations ?? []).flatMap(({ name, stats }) => {
    const bare = name.replace(/^blk\.\d+\./, '');
    const router = bare === 'ffn_routing' && layer.router !== undefined ? [['router', layer.router] as const] : [];
    return [[bare, stats] as const, ...router];
  });
}

function statisticsHead(): string {
  return ['mean', 'std', 'min', 'max', 'L2'].map((name) => name.padStart(11)).join('');
}

function statisticsLine(layer: string, name: string, stats: Statistics): string {
  const numbers = [stats.mean, stats.std, stats.min, stats.max, stats.l2].map((value) => number(value).padStart(11));
  const counts = [
    ...(stats.nan_count > 0 ? [`${stats.nan_count} NaN`] : []),
    ...(stats.inf_count > 0 ? [`${stats.inf_count} infinite`] : []),
    ...(stats.zero_count > 0 ? [`${stats.zero_count} zero`] : []),
  ];
  const note = counts.length === 0 ? '' : `  ${counts.join(', ')} of ${stats.count}`;
  return `${layer.padStart(5)}  ${name.padEnd(22)}${numbers.join('')}${note}`;
}

function routerLine(layer: string, { entropy, max_entropy, experts }: RouterSummary): string {
  const chosen = experts.slice(0, MAX_EXPERTS).map(({ id, count, weight }) => {
    const uses = count > 1 ? ` × ${count}` : '';
    return `${id} (${weight.toFixed(3)}${uses})`;
  });
  const text = `entropy ${number(entropy)} of ${max_entropy.toFixed(3)} nats, experts ${chosen.join(', ')}`;
  return `${layer.padStart(5)}  ${'router'.padEnd(22)}  ${text}${more(experts, MAX_EXPERTS)}`;
}

function comparisonLines(places: readonly PlaceComparison[], first: PlaceComparison | null): string[] {
  const head = ['cosine', 'rel. L2', 'max diff', 'here', 'reference'].map((name) => name.padStart(11)).join('');
  let layer: number | null | undefined;
  const rows = places.map((place) => {
    const label = place.layer === layer || place.layer === null ? '' : String(place.layer);
    layer = place.layer;
    const name = place.activation.replace(/^blk\.\d+\./, '');
    const numbers = [
      place.cosine === null ? '-' : place.cosine.toFixed(5),
      ...[place.relative_l2, place.max_difference, place.value, place.reference].map(number),
    ];
    const notes = [
      ...(place.not_finite > 0 ? [`  ${place.not_finite} of ${place.count} not finite, not alike`] : []),
      ...(place.other_experts ? [`  other experts for ${count(place.other_experts, 'token')}`] : []),
    ].join('');
    const mark = place.activation === first?.activation ? '  <- first' : place.diverged ? '  differs' : '';
    return `${label.padStart(5)}  ${name.padEnd(22)}${numbers.map((text) => text.padStart(11)).join('')}${notes}${mark}`;
  });
  return [`${'layer'.padStart(5)}  ${'activation'.padEnd(22)}${head}`, ...rows];
}

function generationLines({ generation, encoded_tokens }: Trace): string[] {
  if (generation == null) return ['generated: nothing, since values are not finite'];
  const broken = generation.steps.find(({ not_finite }) => not_finite !== null);
  const passes = `${count(generation.steps.length, 'pass', 'passes')} from position ${encoded_tokens.length} on`;
  const state =
    broken === undefined ? 'all finite' : `${broken.not_finite} is not finite at position ${broken.position}`;
  return [`generated: ${JSON.stringify(generation.text)} in ${passes}, ${state}`];
}

function number(value: number | null): string {
  if (value === null) return '-';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return value.toPrecision(5);
}

function percent(probability: number): string {
  return `${(100 * probability).toFixed(1)} %`;
}

function count(value: number, one: string, several = `${one}s`): string {
  return `${value} ${value === 1 ? one : several}`;
}

function more(list: readonly unknown[], shown: number): string {
  return list.length > shown ? ` and ${list.length - shown} more` : '';
}
