import { Hono, type Context } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { HttpBindings } from '@hono/node-server';
import type { Clock } from '../shared/clock.ts';
import { httpStatuses } from '../shared/error-codes.ts';
import { SvcError, toErrorReply } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import { contract } from './contract.ts';
import type { ApiHandlers } from './handlers.ts';
import { toByteStream, type Ending } from './reply-stream.ts';
import { checkVersion, readRequest } from './request.ts';
import { apiVersion, apiVersionHeader, routeNames, routes, svcVersionHeader, type RouteData, type RouteName } from './routes.ts';

/** Larger than any request: a task file has at most 1 MiB. */
const maxBodyBytes = 4 * 1024 * 1024;

/** What the API needs besides its handlers. */
export interface ApiDeps {
  readonly log: Pick<Logger, 'error' | 'debug'>;
  readonly clock: Clock;
  /** Version of svc, for the messages of clients that do not fit. */
  readonly version: string;
  /** Aborts when the server closes, which ends streams. */
  readonly closing?: AbortSignal;
  /** Checks replies against the contract, too; for tests. */
  readonly checkReplies?: boolean;
}

/** Empty when the app is called without a socket, as tests may. */
type Env = { readonly Bindings: Partial<HttpBindings> };

const encoder = new TextEncoder();

/** The control API as a web application: every route of `routes.ts` over its handler. Errors are JSON with the status of their kind. */
export function createApi(handlers: ApiHandlers, deps: ApiDeps): Hono<Env> {
  const app = new Hono<Env>();
  app.use(async (context, next) => {
    await next();
    context.res.headers.set(apiVersionHeader, String(apiVersion));
    context.res.headers.set(svcVersionHeader, deps.version);
  });
  const limit = bodyLimit({
    maxSize: maxBodyBytes,
    onError() {
      throw new SvcError('SVC_BAD_REQUEST', `The body of the request is larger than ${maxBodyBytes} bytes.`);
    },
  });
  for (const name of routeNames) {
    const { method, path } = routes[name];
    if ('body' in contract[name]) app.on(method, path, limit);
    app.on(method, path, (context) => answer(name, handlers, deps, context));
  }
  app.notFound((context) => {
    const error = new SvcError('SVC_ROUTE_NOT_FOUND', `The control API has no route ${context.req.method} ${context.req.path}.`);
    return context.json(toErrorReply(error), httpStatuses[error.kind]);
  });
  app.onError((error, context) => {
    const expected = error instanceof SvcError && error.kind !== 'internal';
    if (!expected && !context.req.raw.signal.aborted) deps.log.error({ err: error, path: context.req.path }, 'a request failed');
    return context.json(toErrorReply(error), error instanceof SvcError ? httpStatuses[error.kind] : httpStatuses.internal);
  });
  return app;
}

async function answer(name: RouteName, handlers: ApiHandlers, deps: ApiDeps, context: Context<Env>): Promise<Response> {
  checkVersion(name, context.req.header(apiVersionHeader));
  const signal = deps.closing === undefined ? context.req.raw.signal : AbortSignal.any([context.req.raw.signal, deps.closing]);
  const result = await handle<RouteName>(name, handlers[name], context, signal);
  const check = (reply: unknown): unknown => (deps.checkReplies === true ? contract[name].reply.parse(reply) : reply);
  const { reply }: RouteData = routes[name];
  if (reply === 'json') return context.body(JSON.stringify(check(result)), 200, { 'content-type': 'application/json' });

  if (!isAsyncIterable(result)) throw new Error(`the handler of "${name}" gives no stream`);
  const lines = reply === 'lines';
  const ending: Ending = (error) => {
    if (signal.aborted) return undefined;
    if (!(error instanceof SvcError)) deps.log.error({ err: error, path: context.req.path }, 'a stream failed');
    return lines ? encodeLine(toErrorReply(error)) : undefined;
  };
  const stream = await toByteStream(result, {
    encode: lines ? (line) => encodeLine(check(line)) : encodeText,
    ending,
    breakOff: () => context.env.outgoing?.destroy(),
    clock: deps.clock,
    signal,
  });
  return context.body(stream, 200, { 'content-type': lines ? 'application/x-ndjson' : 'text/plain; charset=utf-8' });
}

async function handle<Name extends RouteName>(
  name: Name,
  handler: ApiHandlers[Name],
  context: Context,
  signal: AbortSignal,
): Promise<unknown> {
  return handler(await readRequest(name, context, signal));
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function encodeLine(line: unknown): Uint8Array {
  return encoder.encode(`${JSON.stringify(line)}\n`);
}

function encodeText(text: unknown): Uint8Array {
  if (text instanceof Uint8Array) return text;
  return encoder.encode(String(text));
}
