import { messageOf } from '../../../../src/shared/errors.ts';
import type { ServiceName } from './conduct.ts';
import { apiError } from './error-catalogue.ts';
import { watchReads, type Action, type Caller } from './action.ts';
import { modelProblems } from '../wire/model-check.ts';
import { shapesOf } from '../wire/schema.ts';
import { ApiError } from '../wire/api-error.ts';
import { readJson, writeJson } from '../wire/json.ts';
import { readQuery } from '../wire/query-read.ts';
import { xmlElement, xmlMembers } from '../wire/xml-write.ts';

/** A request to a service that is called by action name. */
export interface RpcRequest {
  readonly header: (name: string) => string | undefined;
  readonly body: string;
}

/** A reply before it is sent. */
export interface RpcReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** A protocol of AWS: how it names the action, and how it writes parameters, results and errors. */
export interface RpcProtocol {
  readonly actionName: (request: RpcRequest) => string;
  readonly read: (action: Action, request: RpcRequest) => object;
  readonly reply: (action: Action, result: object, requestId: string) => RpcReply;
  readonly error: (error: ApiError, requestId: string) => RpcReply;
}

const ec2Namespace = 'http://ec2.amazonaws.com/doc/2016-11-15/';
const xmlHead = '<?xml version="1.0" encoding="UTF-8"?>\n';

/** EC2's protocol: forms with capitalised names, replies without a wrapping result. */
const ec2Query: RpcProtocol = {
  actionName: (request) => new URLSearchParams(request.body).get('Action') ?? '',
  read: (action, request) => readQuery(action.operation[4], new URLSearchParams(request.body), 'ec2'),
  reply: (action, result, requestId) => {
    const { output } = shapesOf(action.operation);
    const members = output.isUnitSchema() ? '<return>true</return>' : xmlMembers(action.operation[5], result);
    const body = `${xmlHead}<${action.name}Response xmlns="${ec2Namespace}">${xmlElement('requestId', requestId)}${members}</${action.name}Response>`;
    return { status: 200, contentType: 'text/xml;charset=UTF-8', body };
  },
  error: (error, requestId) => ({
    status: error.status,
    contentType: 'text/xml;charset=UTF-8',
    body: `${xmlHead}<Response><Errors><Error>${xmlElement('Code', error.code)}${xmlElement('Message', error.message)}</Error></Errors>${xmlElement('RequestID', requestId)}</Response>`,
  }),
};

/** The protocol of IAM and STS: forms with `.member.1`, results in a separate element. */
function awsQuery(namespace: string): RpcProtocol {
  return {
    actionName: ec2Query.actionName,
    read: (action, request) => readQuery(action.operation[4], new URLSearchParams(request.body), 'query'),
    reply: (action, result, requestId) => {
      const { output } = shapesOf(action.operation);
      const inner = output.isUnitSchema() ? '' : `<${action.name}Result>${xmlMembers(action.operation[5], result)}</${action.name}Result>`;
      const metadata = `<ResponseMetadata>${xmlElement('RequestId', requestId)}</ResponseMetadata>`;
      const body = `<${action.name}Response xmlns="${namespace}">${inner}${metadata}</${action.name}Response>`;
      return { status: 200, contentType: 'text/xml', body };
    },
    error: (error, requestId) => {
      const type = xmlElement('Type', error.status >= 500 ? 'Receiver' : 'Sender');
      const inner = `<Error>${type}${xmlElement('Code', error.code)}${xmlElement('Message', error.message)}</Error>${xmlElement('RequestId', requestId)}`;
      return { status: error.status, contentType: 'text/xml', body: `<ErrorResponse xmlns="${namespace}">${inner}</ErrorResponse>` };
    },
  };
}

/** JSON 1.1: the action in a header. */
const json: RpcProtocol = {
  actionName: (request) => request.header('x-amz-target')?.split('.').at(-1) ?? '',
  read: (action, request) => readJson(action.operation[4], request.body),
  reply: (_action, result) => ({ status: 200, contentType: 'application/x-amz-json-1.1', body: writeJson(result) }),
  error: (error) => ({
    status: error.status,
    contentType: 'application/x-amz-json-1.1',
    body: JSON.stringify({ __type: error.code, message: error.message }),
  }),
};

/** The protocol of each service that is called by action name. */
export const protocols: Readonly<Record<Exclude<ServiceName, 's3'>, RpcProtocol>> = {
  ec2: ec2Query,
  iam: awsQuery('https://iam.amazonaws.com/doc/2010-05-08/'),
  sts: awsQuery('https://sts.amazonaws.com/doc/2011-06-15/'),
  ssm: json,
  servicequotas: json,
};

/**
 * Reads an action's parameters. The SDK's model decides: a parameter that is unknown, missing, of another type or outside
 * its enumeration is refused, and reported to `problem`, so that the test fails even if the caller copes.
 */
export function readInput(protocol: RpcProtocol, action: Action, request: RpcRequest, problem: (text: string) => void): object {
  const report = (text: string): void => problem(`${action.name} does not fit AWS's model: ${text}`);
  let input: object;
  try {
    input = protocol.read(action, request);
  } catch (error) {
    report(messageOf(error));
    throw error;
  }
  const [first, ...others] = modelProblems(action.operation[4], input);
  if (first === undefined) return input;
  for (const { text } of [first, ...others]) report(text);
  throw new ApiError(first.kind === 'missing' ? 'MissingParameter' : 'InvalidParameterValue', first.text, 400);
}

/** Runs an action on its parameters; reports parameters that the emulator ignored to `problem`. */
export async function runAction(
  action: Action,
  input: object,
  caller: Omit<Caller, 'fingerprint'>,
  problem: (text: string) => void,
): Promise<object> {
  const watched = watchReads(input);
  const fingerprint = JSON.stringify(input, (name, value: unknown) => (name === 'ClientToken' || name === 'DryRun' ? undefined : value));
  const result = await action.run(watched.input, { ...caller, fingerprint });
  for (const { text } of modelProblems(action.operation[5], result))
    problem(`the reply to ${action.name} does not fit AWS's model: ${text}`);
  const unread = watched.unread();
  if (unread.length > 0) problem(`${action.name} was given ${unread.join(', ')}, which the emulator does not act upon`);
  return result;
}

/** Returns the error response. An error that is no refusal is a fault of the emulator and goes to `problem`. */
export function asApiError(error: unknown, problem: (text: string) => void): ApiError {
  if (error instanceof ApiError) return error;
  problem(`the emulator failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return apiError('InternalError');
}
