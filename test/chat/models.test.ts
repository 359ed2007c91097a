/** Templates of well-known models, against what Python's jinja2 makes of them. */

import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { createChatTemplate } from '../../src/chat/index.ts';
import { AprError } from '../../src/errors.ts';
import { createTokenizer } from '../../src/tokenizer/index.ts';
import { bpeEntries, metadataOf } from '../tokenizer/fixtures.ts';
import { RENDERED } from './rendered.ts';
import { CONVERSATIONS, TEMPLATES, TOOLS } from './templates.ts';

for (const [name, source] of Object.entries(TEMPLATES)) {
  test(`renders as the reference does: ${name}`, () => {
    const metadata = metadataOf({
      ...bpeEntries([], { '<s>': 3, '</s>': 3, '<|im_end|>': 3, '<|eot_id|>': 3, '<|end|>': 3 }),
      bos_token_id: 256,
      eos_token_id: 257,
      'general.architecture': 'llama',
      'tokenizer.chat_template': source,
    });
    const template = createChatTemplate(metadata, createTokenizer(metadata))!;
    const cases = RENDERED.filter(({ template: of }) => of === name);
    assert.ok(cases.length >= 3);
    for (const { conversation, thinking = false, refused = false, text } of cases) {
      const tools = conversation === 'tools' ? { tools: TOOLS } : {};
      const render = (): string =>
        template
          .render(CONVERSATIONS[conversation], { thinking, ...tools })
          .map((segment) => segment.text)
          .join('');
      if (!refused) assert.is(render(), text, conversation);
      else assert.throws(render, (error: unknown) => error instanceof AprError && error.message.endsWith(`: ${text}`));
    }
  });
}

test.run();
