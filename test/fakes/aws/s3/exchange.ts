import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { $SchemaRef } from '@smithy/types';
import type { Verified } from '../sigv4/verify.ts';
import { ApiError } from '../wire/api-error.ts';
import type { WireValue } from '../wire/schema.ts';
import { parseXml, readXml } from '../wire/xml-read.ts';
import { xmlElement, xmlMembers } from '../wire/xml-write.ts';
import type { BucketStore } from './buckets.ts';
import { receiveBody, type ReceivedBody } from './receive.ts';
import type { S3Target } from './routes.ts';

const namespace = 'http://s3.amazonaws.com/doc/2006-03-01/';
const mostXmlBytes = 4 * 1_024 * 1_024;

/**
 * A reply before it is sent. It is sent after the operation has finished, so an operation with a lost reply has its
 * effect.
 */
export interface S3Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | AsyncIterable<Buffer>;
}

/** One request to S3 with a valid signature. */
export class S3Exchange {
  readonly target: S3Target;
  readonly verified: Verified;
  readonly store: BucketStore;
  /** Ms since the epoch on the emulator's clock. */
  readonly now: number;
  readonly newId: () => string;
  readonly pageLimit: number;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    parts: Pick<S3Exchange, 'target' | 'verified' | 'store' | 'now' | 'newId' | 'pageLimit'>,
  ) {
    this.#request = request;
    this.#response = response;
    this.target = parts.target;
    this.verified = parts.verified;
    this.store = parts.store;
    this.now = parts.now;
    this.newId = parts.newId;
    this.pageLimit = parts.pageLimit;
  }

  get bucket(): string {
    return this.target.bucket ?? '';
  }

  get key(): string {
    return this.target.key ?? '';
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return Array.isArray(value) ? value.join(',') : value;
  }

  /** Returns all headers with that prefix. */
  headersLike(prefix: string): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(this.#request.headers).flatMap(([name, value]) => (name.startsWith(prefix) ? [[name, String(value)]] : [])),
    );
  }

  /** A parameter of the query. */
  parameter(name: string): string | undefined {
    return this.target.query.get(name) ?? undefined;
  }

  /** Returns the whole verified body; first sends `100 Continue` when the client waits for it. */
  async receive(): Promise<ReceivedBody> {
    if (this.header('expect') === '100-continue') this.#response.writeContinue();
    return receiveBody(this.#request, this.verified, this.store.folder);
  }

  /** Returns a body of XML as a value of a schema; undefined when there is none. */
  async receiveXml(schema: $SchemaRef): Promise<WireValue | undefined> {
    const { body } = await this.receive();
    if (body.size === 0) return undefined;
    const malformed = new ApiError(
      'MalformedXML',
      'The XML you provided was not well-formed or did not validate against our published schema',
      400,
    );
    if (body.size > mostXmlBytes) throw malformed;
    const root = parseXml((await body.bytes()).toString('utf8'));
    const value = root && readXml(schema, root);
    if (value === undefined) throw malformed;
    return value;
  }
}

/** A reply of XML, named as S3 names it. */
export function xmlReply(root: string, schema: $SchemaRef, value: unknown, headers: Readonly<Record<string, string>> = {}): S3Reply {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<${root} xmlns="${namespace}">${xmlMembers(schema, value)}</${root}>`;
  return { status: 200, headers: { ...headers, 'content-type': 'application/xml' }, body };
}

/** A reply without a body. */
export function emptyReply(status: number, headers: Readonly<Record<string, string>> = {}): S3Reply {
  return { status, headers };
}

/** A refusal. `details` has the further elements of S3's error. */
export function errorReply(error: ApiError, target: S3Target, requestId: string): S3Reply {
  const resource = `/${target.bucket ?? ''}${target.key === undefined ? '' : `/${target.key}`}`;
  const details = Object.entries(error.details).map(([name, text]) => xmlElement(name, text));
  const inner = [
    xmlElement('Code', error.code),
    xmlElement('Message', error.message),
    ...details,
    xmlElement('Resource', resource),
    xmlElement('RequestId', requestId),
  ];
  const { Region: region } = error.details;
  return {
    status: error.status,
    headers: { 'content-type': 'application/xml', ...(region === undefined ? {} : { 'x-amz-bucket-region': region }) },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${inner.join('')}</Error>`,
  };
}

/** Sends a reply, with backpressure. */
export async function send(reply: S3Reply, response: ServerResponse, requestId: string, withBody: boolean): Promise<void> {
  response.writeHead(reply.status, { ...reply.headers, 'x-amz-request-id': requestId, server: 'AmazonS3' });
  if (!withBody || reply.body === undefined) response.end();
  else if (typeof reply.body === 'string') response.end(reply.body);
  else await pipeline(Readable.from(reply.body), response);
}
