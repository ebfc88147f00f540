import { isDeepStrictEqual } from 'node:util';
import {
  forwardInterimHead,
  forwardResponseHead,
  lastChunk,
  responseFraming,
  type OutgoingFraming,
} from '../../src/balancer/http1/forward-response.ts';
import type { RequestHead } from '../../src/balancer/http1/request-head.ts';
import type { ResponseHead } from '../../src/balancer/http1/response-head.ts';
import { fieldsOf, readRequests, readResponse, type Message } from '../support/http1-events.ts';
import { chunkOf, compareReadings, differenceOf, sortedLines } from './compare.ts';
import type { FuzzCase, Verdict } from './fuzz-case.ts';
import { knownDifference } from './known-differences.ts';
import { readAsNodeClient } from './node-client.ts';
import type { ReadMessage, Reading } from './reading.ts';

type OwnMessage = Message<ResponseHead>;

/**
 * Checks that svc either refuses a replica's bytes or reads them as `node:http` does, and that both read the client's
 * bytes alike.
 */
export async function checkResponse({ text, method, cuts }: FuzzCase): Promise<Verdict> {
  const whole = readResponse(text, [], method);
  const [message] = whole.messages;
  const own = readingOf(message);
  const isRefused = own.refusal !== undefined;
  if (!isDeepStrictEqual(readResponse(text, cuts, method), whole)) {
    return { disagreement: 'the reads decide how it is read', isRefused, knownDifference: undefined };
  }
  const node = withoutEnd(await readAsNodeClient(Buffer.from(text, 'latin1'), method), own, whole.excess);
  const disagreement = compareReadings(own, node);
  if (disagreement !== undefined) return { disagreement, isRefused, knownDifference: knownDifference(own, node) };
  const isTaken = message?.head !== undefined && !isRefused;
  return { disagreement: isTaken ? await checkForwarded(message, message.head, method) : undefined, isRefused, knownDifference: undefined };
}

function readingOf(message: OwnMessage | undefined): Reading {
  const interim = message?.interim ?? [];
  const messages = interim.map((head) => ({
    first: String(head.status),
    fields: fieldsOf(head),
    body: '',
    trailers: [],
    isComplete: true,
  }));
  const isTaken = message?.head !== undefined && message.fault === undefined;
  return { messages: isTaken ? [...messages, readFinal(message, message.head)] : messages, refusal: message?.fault };
}

function readFinal({ body, trailers, isComplete }: OwnMessage, head: ResponseHead): ReadMessage {
  return { first: String(head.status), fields: fieldsOf(head), body, trailers, isComplete };
}

/** An early end is no refusal. The connection, not the parser, refuses bytes after the response. */
function withoutEnd(node: Reading, own: Reading, excess: number): Reading {
  const isAfterEnd = excess > 0 && node.messages.length === own.messages.length && node.messages.at(-1)?.isComplete === true;
  return isAfterEnd || node.refusal === 'ECONNRESET' ? { messages: node.messages, refusal: undefined } : node;
}

/** The client must get the same response, both for `node:http` and for svc, which forwards it unchanged. */
async function checkForwarded(message: OwnMessage, head: ResponseHead, method: string): Promise<string | undefined> {
  const request = requestOf(method);
  const framing = responseFraming(head, request);
  const text = forward(message, head, request, framing);
  const [again] = readResponse(text, [], method).messages;
  if (again?.head === undefined || again.isComplete !== message.isComplete) return `ours refuses what it forwards: ${JSON.stringify(text)}`;
  if (!isDeepStrictEqual(sortedLines(forward(again, again.head, request, framing)), sortedLines(text)))
    return `forwarded twice it is something else: ${JSON.stringify(text)}`;
  const node = await readAsNodeClient(Buffer.from(text, 'latin1'), method);
  const difference = differenceOf({ ...readFinal(message, head), fields: again.fields }, node.messages.at(-1));
  return difference === undefined ? undefined : `forwarded response: ${difference}`;
}

const requests = new Map<string, RequestHead>();

function requestOf(method: string): RequestHead {
  const request = requests.get(method) ?? readRequests(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`).messages[0]?.head;
  if (request === undefined) throw new Error(`no request with the method ${method}`);
  requests.set(method, request);
  return request;
}

function forward(
  { interim, body, trailers, isComplete }: OwnMessage,
  head: ResponseHead,
  request: RequestHead,
  framing: OutgoingFraming,
): string {
  const early = interim.filter(({ status }) => status === 100 || status === 103).map(forwardInterimHead);
  const text = early.join('') + forwardResponseHead(head, request, framing, { requestId: 'id', isPersistent: true, ownLines: '' });
  return text + (framing === 'chunked' ? chunkOf(body) + (isComplete ? lastChunk(trailers) : '') : body);
}
