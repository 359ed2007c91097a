/** Models by reference: on the Hugging Face hub, at any address, and those that are on this disk already. */

export type { CachedModel } from './cache.ts';
export { listHubCache, listUrlCache } from './cache.ts';
export { chooseModel, modelsAmong } from './choose.ts';
export { cachedModel, type PulledModel, type PullOptions, type PullProgress, pull, referenceOf } from './pull.ts';
export { isRepositoryName, type ModelReference, showReference } from './reference.ts';
export { removeModel, removeUnfinished, type UnfinishedPart, unfinishedParts } from './remove.ts';
export { type HubSettings, hubSettings } from './settings.ts';
export { SHORT_NAMES } from './short-names.ts';
export { showSize } from './sizes.ts';
