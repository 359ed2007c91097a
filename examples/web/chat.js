// A chat with a model that runs in this page.

import { AprError, createEngine } from './apr/apr.js';

const element = (id) => document.getElementById(id);
const DEMO = 'models/demo-qwen3moe-q4_k_m.gguf';

let engine;
let messages = [];
/** Aborts what is going on: a load or an answer. */
let running;

/** Shows the start, the load or the chat. */
function show(view) {
  element('start').hidden = view !== 'start';
  element('loading').hidden = view !== 'loading';
  element('log').hidden = view !== 'chat';
  element('ask').hidden = view !== 'chat';
  element('change').hidden = view !== 'chat';
}

function notice(text) {
  element('notice').textContent = text ?? '';
  element('notice').hidden = text === undefined;
}

/** @param {File | string} source */
async function load(source) {
  notice();
  show('loading');
  running = new AbortController();
  const name = typeof source === 'string' ? source.split('/').at(-1) : source.name;
  element('loading-text').textContent = `Opening ${name} …`;
  element('progress').removeAttribute('value');
  try {
    engine = await createEngine(source, {
      modelName: name,
      signal: running.signal,
      onWarning: ({ message }) => notice(message),
      onProgress: ({ loadedBytes, totalBytes, phase }) => {
        const verb = phase === 'download' ? 'Downloading' : 'Loading';
        const total = totalBytes === 0 ? '' : ` of ${megabytes(totalBytes)}`;
        element('loading-text').textContent = `${verb} ${name}: ${megabytes(loadedBytes)}${total}`;
        if (totalBytes > 0) element('progress').value = loadedBytes / totalBytes;
      },
    });
  } catch (error) {
    show('start');
    if (!(error instanceof AprError && error.code === 'ABORTED')) notice(messageOf(error));
    return;
  }
  const { parameterCount, weightBytes, architecture, backend } = engine.info;
  const threads = backend.threads === 1 ? 'one thread' : `${backend.threads} threads`;
  element('model').textContent =
    `${name} · ${architecture}, ${(parameterCount / 1e6).toFixed(0)} M parameters, ${megabytes(weightBytes)} · ` +
    `${threads}, ${backend.kernel} kernels`;
  messages = [];
  element('log').replaceChildren();
  show('chat');
  element('text').focus();
}

async function unload() {
  running?.abort();
  await engine?.dispose();
  engine = undefined;
  element('model').textContent = 'A language model in this page. Nothing you choose or write leaves it.';
  notice();
  show('start');
}

async function ask(content) {
  notice();
  messages.push({ role: 'user', content });
  bubble('user', content);
  const { text, stats } = bubble('assistant', '');
  running = new AbortController();
  element('send').hidden = true;
  element('stop').hidden = false;
  let answer = '';
  let first;
  try {
    const conversation = engine.info.hasChatTemplate ? { messages } : { prompt: content };
    const { signal } = running;
    for await (const event of engine.generate({ ...conversation, maxTokens: 1024, signal })) {
      if (event.event === 'token') {
        first ??= performance.now();
        answer += event.text;
        text.data = answer;
        const seconds = (performance.now() - first) / 1000;
        if (event.index > 0) stats.textContent = `${(event.index / seconds).toFixed(1)} tokens a second`;
      } else {
        const { timings, prompt_tokens, cached_tokens, tokens_generated } = event;
        const read = prompt_tokens.length - cached_tokens;
        stats.textContent =
          `${tokens_generated} tokens, ${timings.decode_tok_per_sec.toFixed(1)} a second · ` +
          `${read} read in ${(timings.prefill_ms / 1000).toFixed(2)} s` +
          (cached_tokens > 0 ? `, ${cached_tokens} remembered` : '');
      }
      element('log').lastElementChild.scrollIntoView({ block: 'end' });
    }
  } catch (error) {
    if (error instanceof AprError && error.code === 'ABORTED') stats.textContent += ' · stopped';
    else notice(messageOf(error));
  }
  // A question without an answer is no part of the conversation.
  if (answer === '') messages.pop();
  else messages.push({ role: 'assistant', content: answer });
  element('send').hidden = false;
  element('stop').hidden = true;
  element('text').focus();
}

function bubble(role, content) {
  const item = document.createElement('li');
  const text = document.createTextNode(content);
  const stats = document.createElement('small');
  item.className = role;
  item.append(text);
  if (role === 'assistant') item.append(stats);
  element('log').append(item);
  item.scrollIntoView({ block: 'end' });
  return { text, stats };
}

function megabytes(bytes) {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

element('file').addEventListener('change', ({ target }) => {
  if (target.files.length > 0) load(target.files[0]);
  target.value = '';
});
element('demo').addEventListener('click', () => load(new URL(DEMO, location.href).href));
element('address').addEventListener('submit', (event) => {
  event.preventDefault();
  load(element('url').value);
});
element('cancel').addEventListener('click', () => running?.abort());
element('stop').addEventListener('click', () => running?.abort());
element('change').addEventListener('click', unload);
element('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  const content = element('text').value.trim();
  if (content === '' || element('send').hidden) return;
  element('text').value = '';
  ask(content);
});
element('text').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  element('ask').requestSubmit();
});
for (const type of ['dragover', 'dragleave', 'drop']) {
  document.addEventListener(type, (event) => {
    event.preventDefault();
    document.body.classList.toggle('dropping', type === 'dragover');
    const file = type === 'drop' ? event.dataTransfer.files[0] : undefined;
    if (file !== undefined && !element('start').hidden) load(file);
  });
}
