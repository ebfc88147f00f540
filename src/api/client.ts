import { systemClock, type Clock } from '../shared/clock.ts';
import { type Exchange, type WireCall, isErrorReply, openExchange, readText, toSvcError } from './client-exchange.ts';
import type { RouteInput, RouteReply } from './contract.ts';
import type { RouteName, RoutesReplying } from './routes.ts';

const defaultTimeoutMs = 30_000;

interface ClientOptions {
  readonly socketPath: string;
  readonly clock?: Clock;
  /** For a whole call, or the time until a stream begins. */
  readonly timeoutMs?: number;
  /** Signal for the calls that have none. */
  readonly signal?: AbortSignal;
}

interface CallOptions {
  /** When it aborts, a call rejects with the signal's reason, and a stream ends. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

type Input<Name extends RouteName> = CallOptions & RouteInput<Name>;
type Arguments<Name extends RouteName> = object extends Input<Name> ? [input?: Input<Name>] : [input: Input<Name>];

/**
 * The control API as functions. A call rejects with the controller's error (`SvcError` with its code, hint and
 * problems); SVC_CONTROLLER_UNREACHABLE when no controller runs, it ends during the call, or it does not answer in
 * time; SVC_VERSION_MISMATCH when it has another version.
 */
export interface ApiClient {
  call<Name extends RoutesReplying<'json'>>(name: Name, ...input: Arguments<Name>): Promise<RouteReply<Name>>;
  /** Yields each line. A caller that leaves the loop closes the connection. */
  lines<Name extends RoutesReplying<'lines'>>(name: Name, ...input: Arguments<Name>): AsyncIterable<RouteReply<Name>>;
  /** Yields the reply as it arrives. A caller that leaves the loop closes the connection. */
  text<Name extends RoutesReplying<'text'>>(name: Name, ...input: Arguments<Name>): AsyncIterable<Buffer>;
}

/** Makes a client. It opens nothing before the first call. Each call has its own connection. */
export function createClient({ socketPath, clock = systemClock, timeoutMs = defaultTimeoutMs, signal }: ClientOptions): ApiClient {
  const wire = (name: RouteName, input: CallOptions = {}): WireCall => ({
    timeoutMs,
    ...input,
    name,
    socketPath,
    clock,
    signal: input.signal ?? signal,
  });
  return {
    call: (name, ...[input]) => readReply(wire(name, input)),
    async *lines(name, ...[input]) {
      for await (const line of splitLines(readPieces(wire(name, input)))) {
        const value = JSON.parse(line);
        if (isErrorReply(value)) throw toSvcError(value);
        yield value;
      }
    },
    text: (name, ...[input]) => readPieces(wire(name, input)),
  };
}

// Returns `any`: the contract defines the reply's type, and the client trusts the controller to keep to it.
async function readReply(call: WireCall): Promise<ReturnType<typeof JSON.parse>> {
  const exchange = await openExchange(call);
  try {
    return JSON.parse(await readText(exchange.response));
  } catch (error) {
    throw exchange.explain(error);
  } finally {
    exchange.stopTimer();
  }
}

async function* readPieces(call: WireCall): AsyncGenerator<Buffer> {
  let exchange: Exchange | undefined;
  try {
    exchange = await openExchange(call);
    exchange.stopTimer();
    yield* exchange.response;
  } catch (error) {
    if (call.signal?.aborted !== true) throw exchange === undefined ? error : exchange.explain(error);
  }
}

async function* splitLines(pieces: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of pieces) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}
