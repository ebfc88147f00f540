import type { Filter } from './client.ts';

/** A filter for one tag with exactly this value: AWS takes `*` and `?` for wildcards. */
export function tagFilter(name: string, value: string): Filter {
  return { Name: `tag:${name}`, Values: [value.replaceAll(/[\\*?]/g, String.raw`\$&`)] };
}

/** States of machines that cost something or may again. */
export const livingStates: Filter = { Name: 'instance-state-name', Values: ['pending', 'running', 'stopping', 'stopped'] };
