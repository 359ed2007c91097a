/** The entry of the Worker in which a page's engine lives. */

import { expose } from 'comlink';
import { createEngineHost } from '../src/engines/host.ts';
import { createLocalEngine } from '../src/engines/local.ts';
import { createWebPlatform, type WebPlatformOptions } from '../src/platform/web/platform.ts';

// The page sends the options of the platform before everything else.
addEventListener(
  'message',
  (event: MessageEvent<WebPlatformOptions>) => {
    const platform = createWebPlatform(event.data);
    expose(createEngineHost((source, options) => createLocalEngine(platform, source, options)));
  },
  { once: true },
);
