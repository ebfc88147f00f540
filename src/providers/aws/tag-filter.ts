import type { Filter } from './client.ts';
import { ownTags } from './tags.ts';

/** A filter for one tag with exactly this value: AWS takes `*` and `?` for wildcards. */
export function tagFilter(name: string, value: string): Filter {
  return { Name: `tag:${name}`, Values: [value.replaceAll(/[\\*?]/g, String.raw`\$&`)] };
}

/** What a home has, of one owner or of all. */
export function ofHome(homeId: string, owner: string | undefined): Filter[] {
  return [tagFilter(ownTags.home, homeId), ...(owner === undefined ? [] : [tagFilter(ownTags.owner, owner)])];
}

/** States of machines that cost something or may again. */
export const livingStates: Filter = { Name: 'instance-state-name', Values: ['pending', 'running', 'stopping', 'stopped'] };
