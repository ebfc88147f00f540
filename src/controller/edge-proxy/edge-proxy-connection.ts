import { connect, type TLSSocket } from 'node:tls';
import type {
  EdgeProxyMember,
  EdgeProxyCommand,
  ProxiedServiceState,
  EdgeProxyGreeting,
  EdgeProxyReport,
} from '../../domain/edge-proxy/edge-proxy.ts';
import type { Clock } from '../../shared/clock.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { isObject, parseJson } from '../../shared/json.ts';
import { readLine } from './read-command.ts';
import { sharedKeyName, sharedKeyTls } from './shared-key.ts';

/** How long an edge proxy may take to answer, ms. */
const openMs = 3_000;
const maxAnswerBytes = 65_536;

/** What a client of edge proxies needs. */
export interface EdgeProxyAccess {
  readonly key: Buffer;
  /** Term of the controller; 0 where controllers have no rivals. */
  readonly term: number;
  readonly clock: Clock;
}

interface EdgeProxyConnection {
  readonly socket: TLSSocket;
  readonly hello: { readonly pid: number; readonly version: string };
}

const noAnswer = (): Error => new Error(`no answer within ${openMs / 1_000} s`);

/** Opens a connection for one command. Throws SVC_NOT_LEADER (a later leader is known) or SVC_ENDPOINT_DOWN. */
export async function connectEdgeProxy(
  member: EdgeProxyMember,
  access: EdgeProxyAccess,
  signal?: AbortSignal,
): Promise<EdgeProxyConnection> {
  const socket = connect({
    host: member.host,
    port: member.port,
    ...sharedKeyTls,
    pskCallback: () => ({ psk: access.key, identity: sharedKeyName }),
    checkServerIdentity: () => undefined,
  });
  // Readers get the error themselves. Without this listener a late error would end the process.
  socket.on('error', () => undefined);
  socket.setNoDelay(true);
  try {
    send(socket, { type: 'greeting', term: access.term });
    const hello = await withDeadline(access.clock, openMs, () => readReport(socket), noAnswer, signal);
    if (hello.type === 'refused') throw new SvcError('SVC_NOT_LEADER', `The edge proxy ${member.name} refuses: ${hello.reason}`);
    if (hello.type !== 'hello') throw new Error('it did not say hello');
    return { socket, hello };
  } catch (error) {
    socket.destroy();
    if (error instanceof SvcError) throw error;
    throw new SvcError('SVC_ENDPOINT_DOWN', `The edge proxy ${member.name} does not answer: ${messageOf(error)}`, { cause: error });
  }
}

/** Opens a connection, sends the command and waits until it is accepted. The caller reads what follows. */
export async function requestEdgeProxy(
  member: EdgeProxyMember,
  access: EdgeProxyAccess,
  command: EdgeProxyCommand,
  signal?: AbortSignal,
): Promise<TLSSocket> {
  const { socket } = await connectEdgeProxy(member, access, signal);
  const tooLong = (): Error => new SvcError('SVC_ENDPOINT_DOWN', `The edge proxy ${member.name} did not answer in time.`);
  try {
    send(socket, command);
    const answer = await withDeadline(access.clock, openMs, () => readReport(socket), tooLong, signal);
    if (answer.type === 'ok') return socket;
    const why = answer.type === 'refused' ? answer.reason : 'it gave no answer that is known';
    throw new SvcError('SVC_ENDPOINT_DOWN', `The edge proxy ${member.name} cannot do it: ${why}`);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Dials the balancer of a service on an edge proxy. */
export function dialEdgeProxy(
  access: EdgeProxyAccess,
  key: string,
): (member: EdgeProxyMember) => (signal: AbortSignal) => Promise<TLSSocket> {
  return (member) => (signal) => requestEdgeProxy(member, access, { type: 'attach', key }, signal);
}

/** Sends a message over a connection. */
export function send(socket: TLSSocket, message: EdgeProxyGreeting | EdgeProxyCommand | EdgeProxyReport): void {
  socket.write(`${JSON.stringify(message)}\n`);
}

async function readReport(socket: TLSSocket): Promise<EdgeProxyReport> {
  return parseReport(await readLine(socket, maxAnswerBytes)) ?? { type: 'refused', reason: 'it said something that is not known' };
}

/** Parses one line from an edge proxy; undefined when it is no known report. */
export function parseReport(line: string): EdgeProxyReport | undefined {
  const value = parseJson(line);
  if (!isObject(value)) return undefined;
  switch (value['type']) {
    case 'hello': {
      const { pid, version } = value;
      return typeof pid === 'number' && typeof version === 'string' ? { type: 'hello', pid, version } : undefined;
    }
    case 'ok':
      return { type: 'ok' };
    case 'refused':
      return { type: 'refused', reason: String(value['reason']) };
    case 'state': {
      const services = Object.entries(isObject(value['services']) ? value['services'] : {});
      return { type: 'state', services: Object.fromEntries(services.flatMap(([key, state]) => (isState(state) ? [[key, state]] : []))) };
    }
    default:
      return undefined;
  }
}

const isState = (value: unknown): value is ProxiedServiceState =>
  value === 'starting' || value === 'listening' || value === 'port-busy' || value === 'failing';
