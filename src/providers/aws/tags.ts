import { fingerprint } from '../../shared/hex.ts';
import { sharedTags, type Tags } from '../vm/tags.ts';
import type { Filter } from './client.ts';

interface Tag {
  readonly Key: string;
  readonly Value: string;
}

/** The order is fixed, because AWS compares requests with the same token. */
export function tagList(tags: Tags): Tag[] {
  return Object.entries(tags)
    .map(([Key, Value]) => ({ Key, Value }))
    .toSorted((a, b) => (a.Key < b.Key ? -1 : 1));
}

/** The tags of a description. */
export function readTagList(tags: readonly { readonly Key?: string | undefined; readonly Value?: string | undefined }[] = []): Tags {
  return Object.fromEntries(tags.flatMap(({ Key, Value }) => (Key === undefined ? [] : [[Key, Value ?? ''] as const])));
}

/** Matches exactly these values: AWS treats `*` and `?` as wildcards, which are escaped. */
export function tagFilters(tags: Tags): Filter[] {
  return Object.entries(tags).map(([name, value]) => ({ Name: `tag:${name}`, Values: [value.replaceAll(/[\\*?]/g, String.raw`\$&`)] }));
}

/** Matches a home's resources, of one owner or of all. */
export function ofHome(home: string, owner: string | undefined): Filter[] {
  return tagFilters(sharedTags(home, owner));
}

/** States of machines that cost money, or may again. */
export const livingStates: Filter = { Name: 'instance-state-name', Values: ['pending', 'running', 'stopping', 'stopped'] };

/** Depends on the request: a token must never come with another one. `generation` counts its former machines. */
export function clientToken(key: string, request: readonly string[], generation: number): string {
  return `svc-${fingerprint(JSON.stringify([key, ...request, generation]))}${fingerprint(JSON.stringify([generation, ...request, key]))}`;
}
