import { isDeepStrictEqual } from 'node:util';
import { chunkedLength } from '../../src/balancer/http1/body-length.ts';
import { forwardRequestHead } from '../../src/balancer/http1/forward-request.ts';
import { lastChunk } from '../../src/balancer/http1/forward-response.ts';
import type { RequestHead } from '../../src/balancer/http1/request-head.ts';
import { readRequests, type Message } from '../support/http1-events.ts';
import { chunkOf, compareReadings, differenceOf, sortedLines } from './compare.ts';
import type { FuzzCase, Verdict } from './fuzz-case.ts';
import { knownDifference } from './known-differences.ts';
import { readAsNodeServer, stoppedAtUpgrade } from './node-server.ts';
import type { ReadMessage, Reading } from './reading.ts';

type OwnMessage = Message<RequestHead>;

const client = { address: '10.0.0.9', proto: 'http', isTrusted: false } as const;

/**
 * Checks that svc either refuses a client's bytes or reads them as `node:http` does, and that both read the forwarded
 * bytes alike.
 */
export async function checkRequests({ text, cuts }: FuzzCase): Promise<Verdict> {
  const whole = readRequests(text);
  const messages = upToClose(whole.messages);
  const own = readingOf(messages);
  const isRefused = own.refusal !== undefined;
  if (!isDeepStrictEqual(readRequests(text, cuts), whole)) {
    return { disagreement: 'the reads decide how it is read', isRefused, knownDifference: undefined };
  }
  const node = asReplicasSeeIt(await readAsNodeServer(Buffer.from(text, 'latin1')), messages);
  const disagreement = compareReadings(own, node);
  if (disagreement !== undefined) return { disagreement, isRefused, knownDifference: knownDifference(own, node) };
  return { disagreement: await checkForwarded(upToUpgrade(messages)), isRefused, knownDifference: undefined };
}

/** Ignores everything after a request that ends its connection. */
function upToClose(messages: readonly OwnMessage[]): readonly OwnMessage[] {
  const last = messages.findIndex(({ head, isComplete }) => isComplete && head?.isPersistent === false);
  return last < 0 ? messages : messages.slice(0, last + 1);
}

/** The consecutively forwarded requests: those after an upgrade request wait for its answer. */
function upToUpgrade(messages: readonly OwnMessage[]): readonly OwnMessage[] {
  const complete = messages.filter(({ isComplete }) => isComplete);
  const last = complete.findIndex(({ head }) => head?.isUpgrade === true);
  return last < 0 ? complete : complete.slice(0, last + 1);
}

function readingOf(messages: readonly OwnMessage[]): Reading {
  const taken = messages.filter(({ fault }) => fault === undefined);
  return { messages: taken.map(readOne), refusal: messages.find(({ fault }) => fault !== undefined)?.fault };
}

function readOne({ head, fields, body, trailers, isComplete }: OwnMessage): ReadMessage {
  return { first: `${head?.method ?? ''} ${head?.path ?? ''}`, fields, body, trailers, isComplete };
}

/** With targets in origin-form, and without anything after a request that ends its connection for svc. */
function asReplicasSeeIt({ messages, refusal }: Reading, own: readonly OwnMessage[]): Reading {
  const last = own.at(-1);
  const isClosed = last?.isComplete === true && last.head?.isPersistent === false && messages[own.length - 1]?.isComplete === true;
  const seen = isClosed ? messages.slice(0, own.length) : messages;
  return { messages: seen.map(inOriginForm), refusal: isClosed ? undefined : refusal };
}

function inOriginForm(message: ReadMessage): ReadMessage {
  const [method = '', target = ''] = message.first.split(' ');
  const rest = /^https?:\/\/[^/?]*(.*)$/i.exec(target)?.[1];
  if (rest === undefined) return message;
  const path = rest === '' && method === 'OPTIONS' ? '*' : rest.replace(/^(?!\/)/, '/');
  return { ...message, first: `${method} ${path}` };
}

/**
 * Forwarded bytes must be one canonical request each, both for `node:http` and for svc, which forwards it unchanged.
 */
async function checkForwarded(messages: readonly OwnMessage[]): Promise<string | undefined> {
  const text = messages.map(forward).join('');
  const again = readRequests(text).messages;
  if (again.some(({ isComplete }) => !isComplete)) return `ours refuses what it forwards: ${JSON.stringify(text)}`;
  if (!isDeepStrictEqual(sortedLines(again.map(forward).join('')), sortedLines(text))) {
    return `forwarded twice it is something else: ${JSON.stringify(text)}`;
  }
  const node = await readAsNodeServer(Buffer.from(text, 'latin1'));
  const expectedStop = messages.at(-1)?.head?.isUpgrade === true ? stoppedAtUpgrade : undefined;
  if (node.refusal !== expectedStop || node.messages.length !== messages.length) {
    return `node:http reads ${node.messages.length} forwarded requests instead of ${messages.length} (${node.refusal ?? 'no refusal'})`;
  }
  for (const [index, message] of messages.entries()) {
    const difference = differenceOf({ ...readOne(message), fields: again[index]?.fields ?? [] }, node.messages[index]);
    if (difference !== undefined) return `forwarded request ${index + 1}: ${difference}`;
  }
  return undefined;
}

function forward({ head, body, trailers }: OwnMessage): string {
  if (head === undefined) return '';
  const text = forwardRequestHead(head, client, 'id');
  return text + (head.bodyLength === chunkedLength ? chunkOf(body) + lastChunk(trailers) : body);
}
