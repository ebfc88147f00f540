import * as sdk from '@aws-sdk/client-s3';
import type { IncomingHttpHeaders } from 'node:http';
import type { SchemaTraitsObject, StaticOperationSchema } from '@smithy/types';
import { enumOf } from '../wire/model-check.ts';
import { shapesOf, traitsOf } from '../wire/schema.ts';
import type { S3Operation } from './routes.ts';

/** Headers that the emulator implements, or that have no observable effect. */
const knownHeaders =
  /^x-amz-(?:meta-.+|checksum-.+|sdk-checksum-algorithm|content-sha256|date|security-token|user-agent|trailer|decoded-content-length|copy-source(?:-range)?|metadata-directive|storage-class|server-side-encryption|expected-bucket-owner|acl|object-ownership|tagging|te|mp-object-size)$/;

/** Of every signed request; no operation's model has them. */
const protocolNames =
  /^x-amz-(?:content-sha256|date|security-token|user-agent|trailer|decoded-content-length|te|sdk-checksum-algorithm|algorithm|credential|expires|signature|signedheaders)$/;

/**
 * Query parameters and headers of a request that the SDK's model of the operation does not have, whose value is outside
 * the model's enumeration, or that the emulator would ignore.
 */
export function requestProblems(operation: S3Operation, query: URLSearchParams, headers: IncomingHttpHeaders): readonly string[] {
  const model = modelOf(operation);
  const problems: string[] = [];
  const check = (kind: string, allowed: readonly string[] | undefined, name: string, value: string): void => {
    if (allowed === undefined) problems.push(`${operation} has no ${kind} ${name} in AWS's model`);
    else if (allowed.length > 0 && !allowed.includes(value))
      problems.push(`${operation}: ${kind} ${name} is none of the values in AWS's model: ${value}`);
  };
  const checkHeader = (name: string, value: string): void => {
    if (!name.startsWith('x-amz-') || protocolNames.test(name)) return;
    if (!knownHeaders.test(name)) problems.push(`S3 was given ${name}, which the emulator does not act upon`);
    else if (!model.prefixes.some((prefix) => name.startsWith(prefix))) check('header', model.headers.get(name), name, value);
  };
  for (const [name, value] of Object.entries(headers)) checkHeader(name, String(value));
  for (const [name, value] of query) {
    // A presigned URL has headers in its query.
    if (name.toLowerCase().startsWith('x-amz-')) checkHeader(name.toLowerCase(), value);
    else check('query parameter', model.query.get(name), name, value);
  }
  return problems;
}

/** Allowed values by name; empty: any. */
interface RequestModel {
  readonly query: ReadonlyMap<string, readonly string[]>;
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly prefixes: readonly string[];
}

const schemas: Readonly<Record<`${S3Operation}$`, StaticOperationSchema>> = sdk;

const known = new Map<S3Operation, RequestModel>();

function modelOf(operation: S3Operation): RequestModel {
  const found = known.get(operation);
  if (found !== undefined) return found;
  const schema = schemas[`${operation}$`];
  const { input } = shapesOf(schema);
  const query = new Map<string, readonly string[]>([['x-id', [operation]]]);
  const headers = new Map<string, readonly string[]>();
  const prefixes: string[] = [];
  for (const [name, member] of input.isUnitSchema() ? [] : input.structIterator()) {
    const { httpQuery, httpHeader, httpPrefixHeaders } = traitsOf(member);
    const allowed = member.isStringSchema() ? (enumOf(input, name) ?? []) : [];
    if (httpQuery !== undefined) query.set(httpQuery, allowed);
    if (httpHeader !== undefined) headers.set(httpHeader.toLowerCase(), allowed);
    if (httpPrefixHeaders !== undefined) prefixes.push(httpPrefixHeaders.toLowerCase());
  }
  // The SDK adds checksums to these operations, even where the model has no member for them.
  if (traitsOfOperation(schema)['httpChecksum'] !== undefined) prefixes.push('x-amz-checksum-');
  // The path names the parameters that select the operation: `/?list-type=2`.
  for (const [name, value] of new URLSearchParams(/\?(.*)/.exec(pathOf(schema))?.[1]))
    query.set(name, name === 'x-id' || value !== '' ? [value] : []);
  const model = { query, headers, prefixes };
  known.set(operation, model);
  return model;
}

function pathOf(schema: StaticOperationSchema): string {
  const { http } = traitsOfOperation(schema);
  if (http === undefined) throw new Error('an operation of S3 without a path');
  return http[1];
}

function traitsOfOperation([, , , traits]: StaticOperationSchema): SchemaTraitsObject {
  return typeof traits === 'object' ? traits : {};
}
