import type { RouteReply, RouteRequest } from './contract.ts';
import type { RouteName, routes } from './routes.ts';

/** Items as they come; a handler may first wait (and fail) before it has any. */
export type Streamed<Item> = AsyncIterable<Item> | Promise<AsyncIterable<Item>>;

/** What the handler of a route gives back: one reply, or lines or text as they come until `request.signal` aborts. */
export type HandlerResult<Name extends RouteName> = (typeof routes)[Name]['reply'] extends 'json'
  ? Promise<RouteReply<Name>>
  : (typeof routes)[Name]['reply'] extends 'lines'
    ? Streamed<RouteReply<Name>>
    : Streamed<string | Uint8Array>;

/**
 * One handler for every route. The request is validated. Expected failures are thrown as `SvcError` and reach the client as such; so do those
 * that end a stream of lines. `request.signal` aborts when the client has gone or the server closes: streams end then.
 */
export type ApiHandlers = { readonly [Name in RouteName]: (request: RouteRequest<Name>) => HandlerResult<Name> };
