import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemClock } from '../../../../src/shared/clock.ts';
import { authError } from '../core/auth-errors.ts';
import { permissionsOf, type RecordedCall } from '../core/calls.ts';
import { newId, type Emulation } from '../core/emulation.ts';
import { apiError } from '../core/error-catalogue.ts';
import { asApiError } from '../core/rpc.ts';
import { SignatureError, verifyRequest, type UnverifiedRequest, type Verified } from '../sigv4/verify.ts';
import { ApiError } from '../wire/api-error.ts';
import type { BucketStore } from './buckets.ts';
import { errorReply, S3Exchange, send, type S3Reply } from './exchange.ts';
import { operations } from './operations.ts';
import { requestProblems } from './request-check.ts';
import { operationOf, targetOf, type S3Operation, type S3Target } from './routes.ts';

/** Handler of requests to S3. */
export class S3Front {
  readonly #emulation: Emulation;
  readonly #store: BucketStore;
  readonly #calls: RecordedCall[];

  constructor(emulation: Emulation, store: BucketStore, calls: RecordedCall[]) {
    this.#emulation = emulation;
    this.#store = store;
    this.#calls = calls;
  }

  async answer(unverified: UnverifiedRequest, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = randomUUID();
    const { clock, conduct, problem } = this.#emulation;
    const target = targetOf(unverified.header('host') ?? '', unverified.target);
    const operation = operationOf(unverified.method, target, unverified.header);
    let call: RecordedCall = {
      service: 's3',
      action: operation ?? `${unverified.method} ${[...target.query.keys()].join('&')}`,
      region: '',
      accessKeyId: undefined,
      permissions: operation === undefined ? [] : permissionsOf('s3', operation, {}),
      at: clock.now(),
      outcome: 'ok',
    };
    const cut = (outcome: string): void => {
      call.outcome = outcome;
      this.#calls.push(call);
      request.socket.resetAndDestroy();
    };
    let reply: S3Reply;
    try {
      const verified = this.#verify(unverified);
      call = { ...call, accessKeyId: verified.key.accessKeyId, region: verified.scope.region };
      if (operation !== undefined) for (const text of requestProblems(operation, target.query, request.headers)) problem(text);
      const faults = conduct.faultsOf(call, request.url ?? '');
      for (const fault of faults) {
        if (fault.kind === 'delay') await clock.sleep(fault.ms);
        if (fault.kind === 'error') throw apiError(fault.code, fault.message, fault.status);
        if (fault.kind === 'reset') return cut('reset');
      }
      reply = await this.#run(operation, target, verified, request, response);
      if (faults.some((fault) => fault.kind === 'lose-reply')) return cut('lost reply');
    } catch (error) {
      if (request.socket.destroyed) return cut('client went away');
      const refusal = asApiError(error, problem);
      call.outcome = refusal.code;
      reply = errorReply(refusal, target, requestId);
    }
    this.#calls.push(call);
    await send(reply, response, requestId, unverified.method !== 'HEAD');
  }

  async #run(
    operation: S3Operation | undefined,
    target: S3Target,
    verified: Verified,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<S3Reply> {
    const { clock, conduct, random, problem } = this.#emulation;
    if (operation === undefined) {
      problem(`S3 has no ${request.method ?? ''} ${request.url?.split('?')[1] ?? ''} here`);
      throw new ApiError('NotImplemented', 'A header or query you provided implies functionality that is not implemented.', 501);
    }
    const bucket = target.bucket === undefined ? undefined : this.#store.buckets.get(target.bucket);
    if (bucket !== undefined && operation !== 'CreateBucket' && bucket.region !== verified.scope.region) {
      const Endpoint = `${bucket.name}.s3.${bucket.region}.amazonaws.com`;
      const text =
        'The bucket you are attempting to access must be addressed using the specified endpoint. Please send all future requests to this endpoint.';
      throw new ApiError('PermanentRedirect', text, 301, { Endpoint, Bucket: bucket.name, Region: bucket.region });
    }
    const exchange = new S3Exchange(request, response, {
      target,
      verified,
      store: this.#store,
      now: clock.now(),
      newId: () => newId('upload', random, 32),
      pageLimit: conduct.pageLimit,
    });
    return operations[operation](exchange);
  }

  #verify(unverified: UnverifiedRequest): Verified {
    const presigned = unverified.header('authorization') === undefined;
    const payloadHash = unverified.header('x-amz-content-sha256');
    if (!presigned && payloadHash === undefined)
      throw new ApiError('InvalidRequest', 'Missing required header for this request: x-amz-content-sha256', 400);
    try {
      const times = { signing: systemClock.now(), sessions: this.#emulation.clock.now() };
      return verifyRequest(unverified, payloadHash ?? 'UNSIGNED-PAYLOAD', this.#emulation.keys, times);
    } catch (error) {
      if (error instanceof SignatureError) throw authError('s3', error);
      throw error;
    }
  }
}
