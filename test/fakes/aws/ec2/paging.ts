import { ApiError } from '../wire/api-error.ts';

/** One page of a listing. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly NextToken?: string;
}

/** What a request says of pages. */
export interface PageRequest {
  readonly MaxResults?: number | undefined;
  readonly NextToken?: string | undefined;
}

/** What MaxResults may be for an action, and how many items a page has when nothing is said. */
export interface PageBounds {
  readonly least: number;
  readonly most: number;
  readonly usual?: number;
}

/**
 * A page of items, which must be in an order that does not change. A token holds the position of the next item, counted among all items that ever
 * were: what comes and goes between two pages shifts nothing but itself.
 */
export function page<Item extends { readonly id: string }>(
  items: readonly Item[],
  request: PageRequest,
  bounds: PageBounds,
  pageLimit: number,
): Page<Item> {
  const { MaxResults: wanted, NextToken: token } = request;
  if (wanted !== undefined && (wanted < bounds.least || wanted > bounds.most)) {
    const side = wanted < bounds.least ? `greater than ${bounds.least}` : `less than ${bounds.most}`;
    throw new ApiError('InvalidParameterValue', `Value ( ${wanted} ) for parameter maxResults is invalid. Expecting a value ${side}.`, 400);
  }
  const start = token === undefined ? 0 : startOf(token, items);
  const size = Math.min(wanted ?? bounds.usual ?? Number.POSITIVE_INFINITY, pageLimit);
  const shown = items.slice(start, start + size);
  const next = items[start + size];
  return next === undefined
    ? { items: shown }
    : { items: shown, NextToken: Buffer.from(`${start + size} ${next.id}`).toString('base64url') };
}

function startOf(token: string, items: readonly { readonly id: string }[]): number {
  const match = /^(\d+) (\S+)$/.exec(Buffer.from(token, 'base64url').toString());
  if (match === null) throw new ApiError('InvalidNextToken', 'The token is not valid.', 400);
  const found = items.findIndex(({ id }) => id === match[2]);
  return found === -1 ? Math.min(Number(match[1]), items.length) : found;
}
