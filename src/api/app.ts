import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { HttpBindings } from '@hono/node-server';
import type { ZodType } from 'zod';
import type { Clock } from '../shared/clock.ts';
import { httpStatuses } from '../shared/error-codes.ts';
import { SvcError, messageOf, toErrorReply } from '../shared/errors.ts';
import type { Logger } from '../shared/log.ts';
import { type RouteRequest, type RouteSchemas, contract } from './contract.ts';
import type { ApiHandlers } from './handlers.ts';
import {
  type RouteData,
  type RouteName,
  apiVersion,
  apiVersionHeader,
  routeNames,
  routes,
  svcVersionHeader,
  versionlessRoutes,
} from './routes.ts';

/** Larger than any request: a task file has at most 1 MiB. */
const maxBodyBytes = 4 * 1024 * 1024;

interface ApiDeps {
  readonly log: Pick<Logger, 'error' | 'debug'>;
  readonly clock: Clock;
  /** For the error that a client of another version gets. */
  readonly version: string;
  /** Aborts when the server closes, which ends streams. */
  readonly closing?: AbortSignal;
  /** Also checks replies against the contract; for tests. */
  readonly checkReplies?: boolean;
}

/** Empty when the app is called without a socket, as tests may. */
type Env = { readonly Bindings: Partial<HttpBindings> };

const encoder = new TextEncoder();

/** The control API: one handler for each route of `routes.ts`. Errors are JSON with the HTTP status of their kind. */
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

/** Throws SVC_VERSION_MISMATCH when the client uses another version of the API and the route depends on the version. */
function checkVersion(name: RouteName, given: string | undefined): void {
  if (given === undefined || given === String(apiVersion) || versionlessRoutes.includes(name)) return;
  throw new SvcError('SVC_VERSION_MISMATCH', `The controller speaks version ${apiVersion} of its API, and this command another one.`);
}

/** Throws SVC_BAD_REQUEST with every mismatch with the contract. */
async function readRequest<Name extends RouteName>(name: Name, context: Context, signal: AbortSignal): Promise<RouteRequest<Name>> {
  const schemas: RouteSchemas = contract[name];
  const faults: string[] = [];
  const parse = (part: string, schema: ZodType, value: unknown): unknown => {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    faults.push(...result.error.issues.map(({ path, message }) => `${[part, ...path].join('.')}: ${message}`));
    return undefined;
  };
  const request = {
    params: schemas.params && parse('params', schemas.params, context.req.param()),
    query: schemas.query && parse('query', schemas.query, context.req.query()),
    body: schemas.body && parse('body', schemas.body, await readJson(context)),
    signal,
  };
  if (faults.length > 0) throw new SvcError('SVC_BAD_REQUEST', `The request "${name}" does not fit its contract: ${faults.join('; ')}.`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each part is the output of the schema that its type is taken from
  return request as RouteRequest<Name>;
}

async function readJson(context: Context): Promise<unknown> {
  const text = await context.req.text();
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the text, which may contain secrets: only the position is used.
    const where = /position \d+/.exec(messageOf(error))?.[0] ?? 'its end';
    throw new SvcError('SVC_BAD_REQUEST', `The body of the request is not JSON: it breaks off at ${where}.`);
  }
}

/** How long a stream's head waits for the first item, ms: a handler that fails by then can send an error status. */
const headDelayMs = 1_000;

/** Bytes instead of a failed item. Undefined aborts the connection, so the client sees an incomplete reply. */
type Ending = (error: unknown) => Uint8Array | undefined;

/** Options of a stream. */
export interface StreamOptions<Item> {
  readonly encode: (item: Item) => Uint8Array;
  readonly ending: Ending;
  readonly breakOff: () => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Turns items into bytes, at the client's pace. Rejects with the error of a first item that fails at once. */
export async function toByteStream<Item>(items: AsyncIterable<Item>, options: StreamOptions<Item>): Promise<ReadableStream<Uint8Array>> {
  const { encode, ending, breakOff, clock, signal } = options;
  const iterator = items[Symbol.asyncIterator]();
  let first: Promise<IteratorResult<Item>> | undefined = iterator.next();
  const stopWaiting = new AbortController();
  // The stream below reads this result again. Until then a late failure must not count as an unhandled rejection.
  first.catch(() => undefined);
  await Promise.race([first, clock.sleep(headDelayMs, AbortSignal.any([signal, stopWaiting.signal]))]);
  stopWaiting.abort();

  return new ReadableStream({
    async pull(stream) {
      try {
        const { done, value } = await (first ?? iterator.next());
        first = undefined;
        // An aborted stream is incomplete: a clean end would hide the missing rest.
        if (done !== true) stream.enqueue(encode(value));
        else if (signal.aborted) breakOff();
        else stream.close();
      } catch (error) {
        const last = ending(error);
        if (last === undefined) return breakOff();
        stream.enqueue(last);
        stream.close();
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
