import { connect, type TLSSocket } from 'node:tls';
import type { BalancerHostMember, HostCommand, HostedState, HostGreeting, HostReport } from '../../domain/balancer-host.ts';
import type { Clock } from '../../shared/clock.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { isObject } from '../../shared/is-object.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { readLine } from './read-line.ts';
import { sharedKeyName, sharedKeyTls } from './shared-key.ts';

/** How long a balancer host may take to answer, ms. */
const openMs = 3_000;
const maxAnswerBytes = 65_536;

/** What whoever speaks to balancer hosts needs. */
export interface HostAccess {
  readonly key: Buffer;
  /** 0 where controllers have no rivals. */
  readonly term: number;
  readonly clock: Clock;
}

/** A connection to a balancer host that has said hello. */
export interface HostLink {
  readonly socket: TLSSocket;
  readonly hello: { readonly pid: number; readonly version: string };
}

const noAnswer = (): Error => new Error(`no answer within ${openMs / 1_000} s`);

/** Opens a connection for one command. Throws SVC_NOT_LEADER when the host knows a later leader, else SVC_ENDPOINT_DOWN. */
export async function openHostLink(member: BalancerHostMember, access: HostAccess, signal?: AbortSignal): Promise<HostLink> {
  const socket = connect({
    host: member.host,
    port: member.port,
    ...sharedKeyTls,
    pskCallback: () => ({ psk: access.key, identity: sharedKeyName }),
    checkServerIdentity: () => undefined,
  });
  // Whoever waits for something of the socket hears of it; a late error must not end the process.
  socket.on('error', () => undefined);
  socket.setNoDelay(true);
  try {
    send(socket, { type: 'greeting', term: access.term });
    const hello = await withDeadline(access.clock, openMs, () => readReport(socket), noAnswer, signal);
    if (hello.type === 'refused') throw new SvcError('SVC_NOT_LEADER', `The balancer host ${member.name} refuses: ${hello.reason}`);
    if (hello.type !== 'hello') throw new Error('it did not say hello');
    return { socket, hello };
  } catch (error) {
    socket.destroy();
    if (error instanceof SvcError) throw error;
    throw new SvcError('SVC_ENDPOINT_DOWN', `The balancer host ${member.name} does not answer: ${messageOf(error)}`, { cause: error });
  }
}

/** Opens a connection, gives the command and waits until it is accepted; what follows is for the caller to read. */
export async function askHost(
  member: BalancerHostMember,
  access: HostAccess,
  command: HostCommand,
  signal?: AbortSignal,
): Promise<TLSSocket> {
  const { socket } = await openHostLink(member, access, signal);
  const tooLong = (): Error => new SvcError('SVC_ENDPOINT_DOWN', `The balancer host ${member.name} did not answer in time.`);
  try {
    send(socket, command);
    const answer = await withDeadline(access.clock, openMs, () => readReport(socket), tooLong, signal);
    if (answer.type === 'ok') return socket;
    const why = answer.type === 'refused' ? answer.reason : 'it gave no answer that is known';
    throw new SvcError('SVC_ENDPOINT_DOWN', `The balancer host ${member.name} cannot do it: ${why}`);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** How the balancer of a service is reached on a balancer host. */
export function dialHosted(access: HostAccess, key: string): (member: BalancerHostMember) => (signal: AbortSignal) => Promise<TLSSocket> {
  return (member) => (signal) => askHost(member, access, { type: 'attach', key }, signal);
}

/** Says something over a connection. */
export function send(socket: TLSSocket, message: HostGreeting | HostCommand | HostReport): void {
  socket.write(`${JSON.stringify(message)}\n`);
}

async function readReport(socket: TLSSocket): Promise<HostReport> {
  return parseReport(await readLine(socket, maxAnswerBytes)) ?? { type: 'refused', reason: 'it said something that is not known' };
}

/** One line of a balancer host; undefined when it is nothing that is known. */
export function parseReport(line: string): HostReport | undefined {
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

const isState = (value: unknown): value is HostedState =>
  value === 'starting' || value === 'listening' || value === 'port-busy' || value === 'failing';
