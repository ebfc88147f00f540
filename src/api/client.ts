import { systemClock, type Clock } from '../shared/clock.ts';
import { isErrorReply, toSvcError } from './client-errors.ts';
import { openExchange, readText, type Exchange, type WireCall } from './client-exchange.ts';
import type { RouteInput, RouteReply } from './contract.ts';
import type { RouteName, RoutesReplying } from './routes.ts';

/** How long a call may take, ms, when neither the client nor the call says otherwise. */
const defaultTimeoutMs = 30_000;

/** How to reach a controller. */
export interface ClientOptions {
  readonly socketPath: string;
  readonly clock?: Clock;
  /** For a whole call, and until a stream begins; ms. */
  readonly timeoutMs?: number;
  /** For calls that are not given one of their own. */
  readonly signal?: AbortSignal;
}

/** What can be given to each call besides what its route takes. */
export interface CallOptions {
  /** A call rejects with the signal's reason, a stream ends. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

type Input<Name extends RouteName> = CallOptions & RouteInput<Name>;
type Arguments<Name extends RouteName> = object extends Input<Name> ? [input?: Input<Name>] : [input: Input<Name>];

/**
 * The control API as functions. Rejects with the error of the controller (`SvcError` with its code, hint and problems), with SVC_CONTROLLER_UNREACHABLE when there is none,
 * it goes away or it does not answer in time, and with SVC_VERSION_MISMATCH when it is of another version.
 */
export interface ApiClient {
  call<Name extends RoutesReplying<'json'>>(name: Name, ...input: Arguments<Name>): Promise<RouteReply<Name>>;
  /** Leaving the loop over the lines closes the connection. */
  lines<Name extends RoutesReplying<'lines'>>(name: Name, ...input: Arguments<Name>): AsyncIterable<RouteReply<Name>>;
  /** Leaving the loop over the pieces closes the connection. */
  text<Name extends RoutesReplying<'text'>>(name: Name, ...input: Arguments<Name>): AsyncIterable<Buffer>;
}

/** Makes a client; nothing is opened before the first call, and each call has a connection of its own. */
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

// Any, as what it parses is typed by the contract, which the controller keeps to.
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
