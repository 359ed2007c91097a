export { type ChatTemplate, createChatTemplate, encodeSegments, type RenderOptions } from './template.ts';
