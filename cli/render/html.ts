/** Pages that stand alone: no script, nothing loaded, colours for light and dark. */

import { visible } from './terminal.ts';

/**
 * Text as HTML text or attribute value: model files and prompts are not to be trusted with markup, nor with control
 * characters, which no page may hold.
 */
export function escapeHtml(text: string): string {
  return visible(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5c6675; --line: #d5dae2; --page: #fff; --panel: #f6f7f9;
  --one: #0b62c4; --two: #c2410c; --bad: #c01830; --good: #11733b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b4; --line: #39414e; --page: #14171c;
  --panel: #1d2128; --one: #6cb0ff; --two: #ff9a5c; --bad: #ff7285; --good: #58c98a; } }
body { margin: 0 auto; padding: 1.5rem; max-width: 75rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 2rem 0 .25rem; }
p { margin: .25rem 0; } .soft { color: var(--soft); } .bad { color: var(--bad); } .good { color: var(--good); }
.say { background: var(--panel); border-left: 4px solid currentColor; padding: .5rem .75rem; margin: .75rem 0; }
.say span { color: var(--ink); } .wide { overflow-x: auto; } svg { display: block; } svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
pre { background: var(--panel); padding: .5rem .75rem; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 12rem;
  overflow-y: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .1rem .6rem; text-align: right; border-bottom: 1px solid var(--line); font-weight: normal; }
th { color: var(--soft); } td:first-child, th:first-child { text-align: left; }
`;

/** @param body HTML */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
${body}
</body>
</html>
`;
}

/** Viridis (van der Walt and Smith 2015) at eight points: even steps for the eye, also without colour vision. */
const VIRIDIS = [
  [68, 1, 84],
  [70, 50, 127],
  [54, 92, 141],
  [39, 127, 142],
  [31, 161, 135],
  [74, 194, 109],
  [159, 218, 58],
  [253, 231, 37],
] as const;

/** Colour of a share from 0 to 1, and a colour of text that can be read on it. */
export function heatColour(share: number): { readonly fill: string; readonly text: string } {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const index = Math.min(VIRIDIS.length - 2, Math.floor(at));
  const [low, high] = [VIRIDIS[index]!, VIRIDIS[index + 1]!];
  const rgb = low.map((value, i) => Math.round(value + (high[i]! - value) * (at - index)));
  return { fill: `rgb(${rgb.join(',')})`, text: share > 0.6 ? '#111' : '#fff' };
}
