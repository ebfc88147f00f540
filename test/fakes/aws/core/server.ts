import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { systemClock } from '../../../../src/shared/clock.ts';
import type { Action } from './action.ts';
import { authError } from './auth-errors.ts';
import { permissionsOf, type RecordedCall } from './calls.ts';
import type { ServiceName } from './conduct.ts';
import type { Emulation } from './emulation.ts';
import { apiError } from './error-catalogue.ts';
import { asApiError, protocols, readInput, runAction, type RpcReply } from './rpc.ts';
import { S3Front } from '../s3/front.ts';
import type { BucketStore } from '../s3/buckets.ts';
import { sha256Hex } from '../sigv4/signature.ts';
import { SignatureError, verifyRequest, type UnverifiedRequest, type Verified } from '../sigv4/verify.ts';
import { ApiError } from '../wire/api-error.ts';

/** Request handlers, by service and action name. */
export type ActionTable = Readonly<Record<Exclude<ServiceName, 's3'>, ReadonlyMap<string, Action>>>;

const serviceNames: readonly ServiceName[] = ['ec2', 'iam', 'sts', 'ssm', 's3', 'servicequotas'];

/** The single HTTP port of all services. The signature names the service and region of a request. */
export class AwsServer {
  readonly calls: RecordedCall[] = [];
  readonly #emulation: Emulation;
  readonly #actions: ActionTable;
  readonly #disabledRegions: ReadonlySet<string>;
  readonly #s3: S3Front;
  readonly #server: Server;

  constructor(emulation: Emulation, actions: ActionTable, buckets: BucketStore, disabledRegions: ReadonlySet<string>) {
    this.#emulation = emulation;
    this.#actions = actions;
    this.#disabledRegions = disabledRegions;
    this.#s3 = new S3Front(emulation, buckets, this.calls);
    this.#server = createServer((request, response) => void this.#answer(request, response));
    // The SDK sends `Expect: 100-continue` for large bodies. A refusal must come before the body.
    this.#server.on('checkContinue', (request, response) => void this.#answer(request, response));
    this.#server.requestTimeout = 0;
    // Node's default closes a connection after five idle seconds. A request on its way would be lost, and a client
    // without retries would fail.
    this.#server.keepAliveTimeout = 0;
  }

  /** Resolves with the port. */
  async listen(host: string): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, host, resolve);
    });
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) throw new Error('the emulator has no port');
    return address.port;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const unverified: UnverifiedRequest = {
      method: request.method ?? 'GET',
      target: request.url ?? '/',
      header: (name) => headerOf(request, name),
    };
    const named = serviceOf(unverified);
    const service = serviceNames.find((known) => known === named);
    try {
      if (service === 's3' || named === undefined) await this.#s3.answer(unverified, request, response);
      else if (service === undefined) {
        this.#emulation.problem(`a request came for the service ${named}, which is not emulated`);
        response.writeHead(400).end();
      } else await this.#answerRpc(service, unverified, request, response);
    } catch (error) {
      // The client disconnected during the reply. The emulator's own faults are recorded where they occur.
      if (!request.socket.destroyed) this.#emulation.problem(`a request could not be answered: ${String(error)}`);
      request.socket.destroy();
    }
  }

  async #answerRpc(
    service: Exclude<ServiceName, 's3'>,
    unverified: UnverifiedRequest,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const requestId = randomUUID();
    const { clock, conduct, problem } = this.#emulation;
    const protocol = protocols[service];
    const body = await bodyOf(request);
    const rpc = { header: unverified.header, body };
    const name = protocol.actionName(rpc);
    const call: RecordedCall = {
      service,
      action: name,
      region: regionOf(unverified),
      accessKeyId: undefined,
      permissions: [],
      at: clock.now(),
      outcome: 'ok',
    };
    const send = (reply: RpcReply): void => {
      response.writeHead(reply.status, { 'content-type': reply.contentType, 'x-amzn-requestid': requestId }).end(reply.body);
    };
    let recorded = call;
    try {
      const verified = this.#verify(service, unverified, body);
      recorded = { ...call, accessKeyId: verified.key.accessKeyId };
      if (this.#disabledRegions.has(call.region)) throw regionError(service);
      const action = this.#actions[service].get(name);
      if (action === undefined) {
        problem(`${service}:${name} is not emulated`);
        throw new ApiError('InvalidAction', `The action ${name} is not valid for this web service.`, 400);
      }
      const input = readInput(protocol, action, rpc, problem);
      recorded = { ...recorded, permissions: permissionsOf(service, name, input) };
      const faults = conduct.faultsOf(call, body);
      for (const fault of faults) {
        if (fault.kind === 'delay') await clock.sleep(fault.ms);
        if (fault.kind === 'error') throw apiError(fault.code, fault.message, fault.status);
        if (fault.kind === 'reset') return cut(request, recorded, 'reset');
      }
      const result = await runAction(action, input, { key: verified.key, region: call.region }, problem);
      if (faults.some((fault) => fault.kind === 'lose-reply')) return cut(request, recorded, 'lost reply');
      send(protocol.reply(action, result, requestId));
    } catch (error) {
      const refusal = asApiError(error, problem);
      recorded.outcome = refusal.code;
      send(protocol.error(refusal, requestId));
    } finally {
      this.calls.push(recorded);
    }
  }

  #verify(service: ServiceName, unverified: UnverifiedRequest, body: string): Verified {
    try {
      return verifyRequest(unverified, sha256Hex(body), this.#emulation.keys, {
        signing: systemClock.now(),
        sessions: this.#emulation.clock.now(),
      });
    } catch (error) {
      if (error instanceof SignatureError) throw authError(service, error);
      throw error;
    }
  }
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

function credentialOf(request: UnverifiedRequest): readonly string[] {
  const header = /Credential=([^,\s]+)/.exec(request.header('authorization') ?? '')?.[1];
  const query = /[?&]X-Amz-Credential=([^&]+)/.exec(request.target)?.[1];
  return header?.split('/') ?? (query === undefined ? [] : decodeURIComponent(query).split('/'));
}

function serviceOf(request: UnverifiedRequest): string | undefined {
  return credentialOf(request)[3];
}

function regionOf(request: UnverifiedRequest): string {
  return credentialOf(request)[2] ?? '';
}

/** Keys are unknown in a region that the account has not enabled. */
function regionError(service: ServiceName): ApiError {
  if (service === 'ec2') return apiError('AuthFailure');
  return service === 'ssm' || service === 'servicequotas'
    ? apiError('UnrecognizedClientException', 'The security token included in the request is invalid.', 400)
    : apiError('InvalidClientTokenId');
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  const source: AsyncIterable<Buffer> = request;
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function cut(request: IncomingMessage, call: RecordedCall, outcome: string): void {
  call.outcome = outcome;
  request.socket.resetAndDestroy();
}
