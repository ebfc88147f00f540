import type { ApiClient } from '../../src/api/client.ts';
import type { RouteInput, RouteReply } from '../../src/api/contract.ts';
import type { RouteName, RoutesReplying } from '../../src/api/routes.ts';

type Result<Name extends RouteName> =
  Name extends RoutesReplying<'json'>
    ? RouteReply<Name> | Promise<RouteReply<Name>>
    : Name extends RoutesReplying<'lines'>
      ? Iterable<RouteReply<Name>> | AsyncIterable<RouteReply<Name>>
      : Iterable<string> | AsyncIterable<string>;

/** Implementation of a route. Wrapped so that a test may call any of them with any input. */
type Fake<Name extends RouteName> = { call(input: RouteInput<Name> & { readonly signal?: AbortSignal }): Result<Name> }['call'];

/** The routes that a test expects to be called. */
export type FakeRoutes = { readonly [Name in RouteName]?: Fake<Name> };

/** One recorded call. */
export interface RecordedCall {
  readonly name: RouteName;
  readonly input: unknown;
}

/** A client over functions instead of a controller. A route without an implementation fails the call. */
export function fakeClient(routes: FakeRoutes, calls: RecordedCall[] = []): ApiClient {
  async function run(name: RouteName, input: unknown): Promise<unknown> {
    calls.push({ name, input: withoutSignal(input) });
    const route: { call(given: unknown): unknown }['call'] | undefined = routes[name];
    if (route === undefined) throw new Error(`the test expects no call of ${name}`);
    return route(input ?? {});
  }
  async function* items(name: RouteName, input: unknown): AsyncGenerator {
    const result = await run(name, input);
    if (isIterable(result)) yield* result;
  }
  return {
    call: async (name, ...[input]) => JSON.parse(JSON.stringify(await run(name, input))),
    async *lines(name, ...[input]) {
      for await (const item of items(name, input)) yield JSON.parse(JSON.stringify(item));
    },
    async *text(name, ...[input]) {
      for await (const item of items(name, input)) yield Buffer.from(String(item));
    },
  };
}

function withoutSignal(input: unknown): unknown {
  if (typeof input !== 'object' || input === null) return input;
  return Object.fromEntries(Object.entries(input).filter(([key]) => key !== 'signal'));
}

function isIterable(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);
}
