import { ApiError } from '../wire/api-error.ts';

/** One page of a listing. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly NextToken?: string;
}

/** Paging parameters of a request. */
export interface PageRequest {
  readonly MaxResults?: number | undefined;
  readonly NextToken?: string | undefined;
}

/** The allowed MaxResults of an action, and its default page size. */
export interface PageBounds {
  readonly least: number;
  readonly most: number;
  readonly usual?: number;
}

/**
 * Returns a page of items, which must have a stable order. A token holds the position of the next item among all items
 * ever created, so changes between two pages shift no other item.
 */
export function page<Item extends { readonly id: string }>(
  items: readonly Item[],
  request: PageRequest,
  bounds: PageBounds,
  pageLimit: number,
): Page<Item> {
  const { MaxResults: maxResults, NextToken: token } = request;
  if (maxResults !== undefined && (maxResults < bounds.least || maxResults > bounds.most)) {
    const side = maxResults < bounds.least ? `greater than ${bounds.least}` : `less than ${bounds.most}`;
    throw new ApiError(
      'InvalidParameterValue',
      `Value ( ${maxResults} ) for parameter maxResults is invalid. Expecting a value ${side}.`,
      400,
    );
  }
  const start = token === undefined ? 0 : startOf(token, items);
  const size = Math.min(maxResults ?? bounds.usual ?? Number.POSITIVE_INFINITY, pageLimit);
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
