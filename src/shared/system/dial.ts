import { connect, type Socket } from 'node:net';
import { systemClock, type Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { ReplicaAddress } from '../replica-address.ts';

/** The connection was not made. Nothing of the request reached the replica, so it is safe to send it to another one. */
export class DialError extends Error {
  override readonly name = 'DialError';
  /** Such as `ECONNREFUSED`. `ETIMEDOUT`: the time limit was reached. `EPROTO`: the peer's handshake was invalid. */
  readonly code: string;

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

interface DialOptions {
  /** For the connection with its handshake. */
  readonly timeoutMs: number;
  readonly clock?: Clock;
}

/** Called with an error, or with a paused socket whose next byte is the replica's. */
export type DialDone = (error: DialError | undefined, socket: Socket | undefined) => void;

/** Stops dialling: `done` is not called any more. Has no effect once dialling has finished. */
export type CancelDial = () => void;

const maxHandshakeBytes = 64;

/** Opens a stream to a replica. Calls `done` once, always after `dial` has returned. svc leaves no listeners on it. */
export function dial(address: ReplicaAddress, { timeoutMs, clock = systemClock }: DialOptions, done: DialDone): CancelDial {
  const socket =
    address.kind === 'tcp' ? connect({ host: address.host, port: address.port, noDelay: true }) : connect({ path: address.path });
  let answer: Buffer = Buffer.alloc(0);
  let isSettled = false;

  const onConnect = (): void => {
    if (address.kind !== 'unix') return succeed(undefined);
    socket.on('data', onAnswer);
    socket.write(`${address.port}\n`);
    return undefined;
  };
  const onAnswer = (bytes: Buffer): void => {
    answer = answer.length === 0 ? bytes : Buffer.concat([answer, bytes]);
    const lineEnd = answer.indexOf('\n');
    if (lineEnd > maxHandshakeBytes || (lineEnd < 0 && answer.length > maxHandshakeBytes)) return fail('EPROTO');
    if (lineEnd < 0) return undefined;
    const line = answer.toString('latin1', 0, lineEnd);
    if (line === 'OK') return succeed(answer.subarray(lineEnd + 1));
    return fail(line.startsWith('ERR ') ? line.slice('ERR '.length) : 'EPROTO');
  };
  const onEnd = (): void => fail('ECONNRESET');
  const onError = (error: Error): void => fail('code' in error && typeof error.code === 'string' ? error.code : 'EIO', error);

  // Remove only svc's listeners: the socket needs those that it added itself.
  const detach = (): void => {
    isSettled = true;
    cancelTimer();
    socket.off('connect', onConnect).off('data', onAnswer).off('end', onEnd).off('error', onError);
  };
  const succeed = (firstBytes: Buffer | undefined): void => {
    detach();
    socket.pause();
    if (firstBytes !== undefined && firstBytes.length > 0) socket.unshift(firstBytes);
    done(undefined, socket);
  };
  const cancel = (): void => {
    detach();
    // A late error of an unused socket must not end the process.
    socket.on('error', () => undefined);
    socket.destroy();
  };
  const fail = (code: string, cause?: unknown): void => {
    cancel();
    const why = cause === undefined ? code : messageOf(cause);
    done(new DialError(code, `Never reached the replica at ${describe(address)}: ${why}`, cause), undefined);
  };
  const cancelTimer = clock.after(timeoutMs, () => fail('ETIMEDOUT'));
  socket.on('connect', onConnect).on('end', onEnd).on('error', onError);
  return () => {
    if (!isSettled) cancel();
  };
}

/** `dial` as a promise; rejects with `DialError`. */
export function dialReplica(address: ReplicaAddress, options: DialOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    dial(address, options, (error, socket) => {
      if (socket === undefined) reject(error ?? new DialError('EIO', `Never reached the replica at ${describe(address)}`));
      else resolve(socket);
    });
  });
}

function describe(address: ReplicaAddress): string {
  return address.kind === 'tcp' ? `${address.host}:${address.port}` : `${address.path} port ${address.port}`;
}
