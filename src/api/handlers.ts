import type { RouteReply, RouteRequest } from './contract.ts';
import type { RouteName, routes } from './routes.ts';

/** Items as they become available. A handler that waits or may fail before the first item returns a promise. */
type Streamed<Item> = AsyncIterable<Item> | Promise<AsyncIterable<Item>>;

/** Result of a route's handler: one reply, or lines or text that stream until `request.signal` aborts. */
type HandlerResult<Name extends RouteName> = (typeof routes)[Name]['reply'] extends 'json'
  ? Promise<RouteReply<Name>>
  : (typeof routes)[Name]['reply'] extends 'lines'
    ? Streamed<RouteReply<Name>>
    : Streamed<string | Uint8Array>;

/**
 * One handler for every route. The server has validated the request. A client gets the `SvcError` that a handler
 * throws, before or during a stream of lines. Streams must end when `request.signal` aborts: the client disconnected,
 * or the server closes.
 */
export type ApiHandlers = { readonly [Name in RouteName]: (request: RouteRequest<Name>) => HandlerResult<Name> };
