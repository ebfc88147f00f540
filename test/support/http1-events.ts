import { defaultHeadLimits } from '../../src/balancer/http1/limits.ts';
import type { RequestHead } from '../../src/balancer/http1/request-head.ts';
import { RequestParser } from '../../src/balancer/http1/request-parser.ts';
import type { ResponseHead } from '../../src/balancer/http1/response-head.ts';
import { ResponseParser } from '../../src/balancer/http1/response-parser.ts';

/** A parser's events for one message. Pieces of a body are joined, because their boundaries depend on the reads. */
export interface Message<Head> {
  readonly interim: readonly Head[];
  readonly head: Head | undefined;
  /** Of the head, as `Name: value`. */
  readonly fields: readonly string[];
  readonly body: string;
  readonly trailers: readonly string[];
  readonly isComplete: boolean;
  readonly fault: string | undefined;
}

/** All events of some bytes. */
export interface Reading<Head> {
  readonly messages: readonly Message<Head>[];
  /** Unexpected bytes after the last message. */
  readonly excess: number;
}

type Open<Head> = { -readonly [Key in keyof Message<Head>]: Message<Head>[Key] };

const blank = <Head>(): Open<Head> => ({
  interim: [],
  head: undefined,
  fields: [],
  body: '',
  trailers: [],
  isComplete: false,
  fault: undefined,
});

/** The fields of a head as `Name: value`, one for each line. */
export function fieldsOf({ fields }: RequestHead | ResponseHead): readonly string[] {
  return fields.kinds.map((_, index) => `${fields.name(index)}: ${fields.value(index)}`);
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');

/** Cuts bytes at the given offsets; each piece has a separate buffer, like reads of a socket. */
export function cut(text: string, offsets: readonly number[]): readonly Buffer[] {
  const edges = [0, ...offsets.toSorted((a, b) => a - b), text.length];
  return edges.slice(1).map((edge, index) => bytesOf(text.slice(edges[index], edge)));
}

/** Parses requests of a connection whose bytes arrive cut at `offsets`. */
export function readRequests(text: string, offsets: readonly number[] = []): Reading<RequestHead> {
  const messages: Open<RequestHead>[] = [];
  let current = blank<RequestHead>();
  const close = (): void => {
    messages.push(current);
    current = blank();
  };
  const parser = new RequestParser(
    {
      requestHead: (head) => {
        current.head = head;
        current.fields = fieldsOf(head);
      },
      body: (bytes, from, to) => {
        current.body += bytes.toString('latin1', from, to);
      },
      requestEnd: (trailers) => {
        current.trailers = trailers;
        current.isComplete = true;
        close();
      },
      requestFault: (fault) => {
        current.fault = fault;
        close();
      },
    },
    defaultHeadLimits,
  );
  for (const chunk of cut(text, offsets)) {
    let at = 0;
    while (at < chunk.length) at = parser.feed(chunk, at);
  }
  if (current.head !== undefined) close();
  return { messages, excess: 0 };
}

/** Parses the response to one request; `ends`: the replica closes the connection after the bytes. */
export function readResponse(text: string, offsets: readonly number[] = [], method = 'GET', ends = true): Reading<ResponseHead> {
  const current = blank<ResponseHead>();
  const interim: ResponseHead[] = [];
  const parser = new ResponseParser(defaultHeadLimits);
  parser.begin(method, false, {
    responseInterim: (head) => {
      interim.push(head);
    },
    responseHead: (head) => {
      current.head = head;
      current.fields = fieldsOf(head);
    },
    body: (bytes, from, to) => {
      current.body += bytes.toString('latin1', from, to);
    },
    responseEnd: (trailers) => {
      current.trailers = trailers;
      current.isComplete = true;
    },
    responseFault: (fault) => {
      current.fault = fault;
    },
  });
  let excess = 0;
  for (const chunk of cut(text, offsets)) excess += chunk.length - parser.feed(chunk, 0);
  if (ends) parser.finish();
  return { messages: [{ ...current, interim }], excess };
}

/** The only request head in these bytes, which must be valid. */
export function headOf(bytes: string): RequestHead {
  const head = readRequests(bytes).messages[0]?.head;
  if (head === undefined) throw new Error(`refused: ${bytes}`);
  return head;
}
