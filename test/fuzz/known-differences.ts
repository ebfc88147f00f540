import { METHODS } from 'node:http';
import { isBeginning } from './compare.ts';
import { stoppedAtUpgrade } from './node-server.ts';
import type { ReadMessage, Reading } from './reading.ts';

/** The position at which `node:http` stopped. */
interface Stop {
  readonly refusal: string;
  /** svc's reading of the refused message; undefined when svc waits for the rest of its head. */
  readonly refused: ReadMessage | undefined;
  /** Whether `node:http` had accepted the head of that message. */
  readonly isInBody: boolean;
  readonly before: ReadMessage | undefined;
}

/**
 * A case in which `node:http` refuses a message that svc accepts, on purpose or not. Both readings before the refusal
 * must agree.
 */
interface KnownDifference {
  readonly name: string;
  readonly applies: (stop: Stop) => boolean;
}

const nodeMethods: ReadonlySet<string> = new Set(METHODS);
const hasField = (message: ReadMessage | undefined, name: string): boolean =>
  message?.fields.some((line) => line.toLowerCase().startsWith(`${name}:`)) === true;
const isChunked = (message: ReadMessage | undefined): boolean => hasField(message, 'transfer-encoding');
const framingRefusals: ReadonlySet<string> = new Set([
  'HPE_INVALID_TRANSFER_ENCODING',
  'HPE_INVALID_CONTENT_LENGTH',
  'HPE_UNEXPECTED_CONTENT_LENGTH',
]);

const knownDifferences: readonly KnownDifference[] = [
  {
    // node:http has not accepted the head: it refuses most of these after the whole head.
    name: 'ours waits for the rest of a head',
    applies: ({ refused }) => refused === undefined,
  },
  {
    // RFC 9110, section 9.1: any token is a method. node:http has a list.
    name: 'a method that node:http does not know',
    applies: ({ refusal, refused }) => refusal === 'HPE_INVALID_METHOD' && !nodeMethods.has(refused?.first.split(' ')[0] ?? ''),
  },
  {
    // svc drops chunk extensions without parsing them.
    name: 'a chunk extension that is against the grammar',
    applies: ({ refusal, refused, isInBody }) => refusal === 'HPE_STRICT' && isInBody && isChunked(refused),
  },
  {
    // RFC 9110, section 6.5.1 lets a recipient drop them, as svc does.
    name: 'a framing field in the trailers',
    applies: ({ refusal, refused, isInBody }) => framingRefusals.has(refusal) && isInBody && isChunked(refused),
  },
  {
    // node:http treats the field as one of the head.
    name: 'Connection in the trailers ends the connection for node:http',
    applies: ({ refusal, before }) => refusal === 'HPE_CLOSED_CONNECTION' && isChunked(before),
  },
  {
    // Connection fields have no meaning in an interim response; svc does not forward it.
    name: 'Connection in an interim response ends the connection for node:http',
    applies: ({ refusal, before }) => refusal === 'HPE_CLOSED_CONNECTION' && before?.first.startsWith('1') === true,
  },
  {
    // No standard defines the field; svc drops it.
    name: 'Proxy-Connection ends the connection for node:http',
    applies: ({ refusal, before }) => refusal === 'HPE_CLOSED_CONNECTION' && hasField(before, 'proxy-connection'),
  },
  {
    name: 'node:http reads no more requests after one that asks for an upgrade',
    applies: ({ refusal }) => refusal === stoppedAtUpgrade,
  },
];

/** Returns the name of the known difference that explains the refusal by `node:http`; undefined when there is none. */
export function knownDifference(own: Reading, { messages, refusal }: Reading): string | undefined {
  if (refusal === undefined || !isBeginning({ messages, refusal }, own)) return undefined;
  const isInBody = messages.at(-1)?.isComplete === false;
  const at = isInBody ? messages.length - 1 : messages.length;
  const stop = { refusal, refused: own.messages[at], isInBody, before: own.messages[at - 1] };
  return knownDifferences.find(({ applies }) => applies(stop))?.name;
}
