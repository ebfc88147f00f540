import type { Filter } from '@aws-sdk/client-ec2';
import { ApiError } from '../wire/api-error.ts';
import type { Resource } from './records.ts';

/** Returns the values of a resource for a filter's name; empty when it has none. */
export type FilterFields<Item> = Readonly<Record<string, (item: Item) => string | undefined | readonly (string | undefined)[]>>;

/** Compiles a filter's value: `*` matches any text, `?` one character; a backslash escapes both. */
function pattern(value: string): RegExp {
  const source = value.replaceAll(/\\?[\s\S]/g, (piece) => {
    if (piece === '*') return '.*';
    if (piece === '?') return '.';
    return (piece.length === 2 ? piece.slice(1) : piece).replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  });
  return new RegExp(`^${source}$`, 's');
}

/** Returns the tags that reads see at a time, ms since the epoch. */
export function visibleTags(resource: Pick<Resource, 'tags'>, now: number): Map<string, string> {
  return new Map([...resource.tags].filter(([, tag]) => tag.visibleAt <= now).map(([key, tag]) => [key, tag.value]));
}

/**
 * Returns the items that satisfy all filters, each with any of its values. The emulator refuses an unknown filter as
 * AWS refuses an invalid one, instead of ignoring it.
 */
export function filtered<Item extends Pick<Resource, 'tags'>>(
  items: readonly Item[],
  filters: readonly Filter[] | undefined,
  fields: FilterFields<Item>,
  now: number,
): readonly Item[] {
  return (filters ?? []).reduce((left, { Name: name = '', Values: values = [] }) => {
    const patterns = values.map(pattern);
    const says = (item: Item): readonly (string | undefined)[] => {
      const tags = visibleTags(item, now);
      if (name.startsWith('tag:')) return [tags.get(name.slice('tag:'.length))];
      if (name === 'tag-key') return [...tags.keys()];
      const field = fields[name];
      if (field === undefined) throw new ApiError('InvalidParameterValue', `The filter '${name}' is invalid`, 400);
      const value = field(item);
      return typeof value === 'object' ? value : [value];
    };
    // Runs without matching items too: an invalid filter is always invalid.
    if (items.length === 0 && !name.startsWith('tag') && fields[name] === undefined) {
      throw new ApiError('InvalidParameterValue', `The filter '${name}' is invalid`, 400);
    }
    return left.filter((item) => says(item).some((value) => value !== undefined && patterns.some((one) => one.test(value))));
  }, items);
}
