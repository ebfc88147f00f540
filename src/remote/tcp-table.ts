import { isIPv4 } from 'node:net';
import { proxyPort } from './isolation/enter-settings.ts';
import type { Remote, RemoteCallOptions } from './remote.ts';

/** A line of /proc/net/tcp or tcp6. Addresses are bytes; an IPv4 address is the last four after `::ffff:`. */
interface TcpLine {
  readonly local: Endpoint;
  readonly remote: Endpoint;
  readonly state: string;
}

interface Endpoint {
  readonly address: readonly number[];
  readonly port: number;
}

/** Established or half closed: a program may at once close a connection on which nothing is sent. */
const connected = ['01', '04', '05', '08'];
const listening = '0A';

/** Of svc's own programs beside a replica's. */
const ownPorts: readonly number[] = [proxyPort];
const mostNamed = 5;

const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** Whether a program accepts connections from other machines. `table`: /proc/net/tcp and tcp6. Pure. */
export function listensOn(table: string, port: number): boolean {
  return parseTcp(table).some(({ local, state }) => state === listening && local.port === port && !isLoopback(local.address));
}

/** Why requests to a closed port fail: where a program listens instead. Undefined: nowhere. `table`: as above. Pure. */
export function whyClosed(table: string, port: number): string | undefined {
  const sockets = parseTcp(table).filter(({ local, state }) => state === listening && !ownPorts.includes(local.port));
  const here = sockets.filter(({ local }) => local.port === port);
  // It has just begun to listen.
  if (here.some(({ local }) => !isLoopback(local.address))) return undefined;
  if (here.length > 0) return `the program listens on port ${port} of 127.0.0.1 only; it must listen on 0.0.0.0`;
  const ports = [...new Set(sockets.map(({ local }) => local.port))].toSorted((a, b) => a - b);
  if (ports.length === 0) return undefined;
  const named = ports.slice(0, mostNamed).join(', ');
  return `nothing listens on port ${port}, but a program listens on port ${named}; change resources.ports, or the port of the program`;
}

/** Whether the table has an open connection from `from` to a port. Pure. */
export function hasConnection(table: string, port: number, from: { readonly address: string; readonly port: number }): boolean {
  const address = endpointBytes(from.address);
  return parseTcp(table).some(
    ({ local, remote, state }) =>
      connected.includes(state) && local.port === port && remote.port === from.port && isSame(remote.address, address),
  );
}

/** proc(5): number, local and remote address as hex in the machine's own byte order, word by word, state. */
function parseTcp(table: string): readonly TcpLine[] {
  return table.split('\n').flatMap((line) => {
    const match = /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]{2}) /i.exec(line);
    if (match === null) return [];
    const [, localAddress = '', localPort = '', remoteAddress = '', remotePort = '', state = ''] = match;
    return [
      {
        local: { address: wordBytes(localAddress), port: Number.parseInt(localPort, 16) },
        remote: { address: wordBytes(remoteAddress), port: Number.parseInt(remotePort, 16) },
        state: state.toUpperCase(),
      },
    ];
  });
}

/** All Kubernetes architectures except s390x are little-endian. */
function wordBytes(hex: string): readonly number[] {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) =>
    (word.match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16)).toReversed(),
  );
  return bytes.length === 4 ? [...mappedPrefix, ...bytes] : bytes;
}

function endpointBytes(address: string): readonly number[] {
  return isIPv4(address) ? [...mappedPrefix, ...address.split('.').map(Number)] : ipv6Bytes(address);
}

function isLoopback(address: readonly number[]): boolean {
  const isMapped = isSame(address.slice(0, 12), mappedPrefix);
  return isMapped ? address[12] === 127 : address.slice(0, 15).every((byte) => byte === 0) && address[15] === 1;
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** All sixteen bytes. Pure. */
export function ipv6Bytes(address: string): readonly number[] {
  const [plain = ''] = address.split('%');
  // The last two groups may be an IPv4 address.
  const text = plain.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_all, ...parts: readonly string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = '', tail] = text.split('::');
  const after = tail === undefined ? [] : groupsOf(tail);
  const before = groupsOf(head);
  const groups = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => '0'), ...after];
  return groups.flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function groupsOf(part: string): readonly string[] {
  return part === '' ? [] : part.split(':');
}

/** `Remote.connections` of a machine with the folder `dir`. `enter.sh` records the first process of each network there. */
export async function machineConnections(
  remote: Pick<Remote, 'exec'>,
  dir: string | undefined,
  options: RemoteCallOptions,
): Promise<string> {
  if (dir === undefined) return '';
  const script =
    'for file in "$1"/init.*; do read -r pid rest < "$file" && cat "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6"; done 2> /dev/null';
  return (await remote.exec(['sh', '-c', script, 'sh', dir], options)).stdout;
}
