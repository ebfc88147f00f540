// The outbound proxy of local machines whose network has no connection to the outside: egress.ts SOCKET
//
// An HTTP proxy (CONNECT, and plain requests) on a Unix socket, outside of the machine. Inside, the forwarder passes
// connections to it, and variables such as http_proxy point to the forwarder. The proxy exits when its standard input
// ends: only the machine's processes hold the other end.
import { renameSync, rmSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import { BlockList, connect, isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';

// An import would load undici too: half of the processor time of this program's start.
const { createServer, request } = process.getBuiltinModule('node:http');

/** One address of a host name. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

interface EgressOptions {
  readonly resolve: (host: string) => Promise<readonly ResolvedAddress[]>;
  readonly isForbidden: (address: string) => boolean;
}

/**
 * This computer's loopback, link-local neighbours, addresses of several hosts, and the other addresses at which clouds
 * serve credentials: Alibaba Cloud (100.100.100.200), Azure (168.63.129.16), AWS (fd00:ec2::/32) and Google Cloud
 * (fd20:ce::254). The list checks IPv4 addresses in IPv6 notation (::ffff:0:0/96) by the rules for IPv4. Two other
 * notations reach IPv4 addresses through translators: 64:ff9b::/96 (RFC 6052), which networks without IPv4 need, and
 * 2002::/16 (RFC 3056), which is no longer in use.
 */
const forbidden = new BlockList();
forbidden.addSubnet('0.0.0.0', 8, 'ipv4');
forbidden.addSubnet('127.0.0.0', 8, 'ipv4');
forbidden.addSubnet('169.254.0.0', 16, 'ipv4');
forbidden.addSubnet('224.0.0.0', 4, 'ipv4');
forbidden.addAddress('255.255.255.255', 'ipv4');
forbidden.addAddress('100.100.100.200', 'ipv4');
forbidden.addAddress('168.63.129.16', 'ipv4');
forbidden.addAddress('::', 'ipv6');
forbidden.addAddress('::1', 'ipv6');
forbidden.addSubnet('fe80::', 10, 'ipv6');
forbidden.addSubnet('ff00::', 8, 'ipv6');
forbidden.addSubnet('fd00:ec2::', 32, 'ipv6');
forbidden.addAddress('fd20:ce::254', 'ipv6');
forbidden.addAddress('fd00:c1::a9fe:a9fe', 'ipv6');
forbidden.addAddress('fd00:42::42', 'ipv6');
forbidden.addAddress('192.0.0.192', 'ipv4');
for (const [prefix, length] of [
  ['7f00:0', 104],
  ['a9fe:0', 112],
  ['6464:64c8', 128],
  ['a83f:8110', 128],
] as const)
  forbidden.addSubnet(`64:ff9b::${prefix}`, length, 'ipv6');
forbidden.addSubnet('2002::', 16, 'ipv6');

/** Whether an IP address is loopback, link-local, one of a cloud's metadata, or not a single host. Other text is forbidden too. */
export function isForbiddenAddress(address: string): boolean {
  const family = isIP(address);
  return family === 0 || forbidden.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** Headers that apply to one connection rather than the message (RFC 9110, 7.6.1). */
const hopByHop = ['connection', 'keep-alive', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

class Refusal extends Error {}

/** Creates the proxy without listening. */
export function createEgress(options: EgressOptions): Server {
  const server = createServer((asked, reply) => {
    relayRequest(asked, reply, options).catch((error: unknown) => {
      if (!reply.headersSent) reply.writeHead(error instanceof Refusal ? 403 : 502, { 'content-type': 'text/plain' });
      reply.end(`${sentence(error)}\n`);
    });
  });
  server.on('connect', (asked: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on('error', () => client.destroy());
    tunnel(asked, client, head, options).catch((error: unknown) => {
      const body = `${sentence(error)}\n`;
      const status = error instanceof Refusal ? '403 Forbidden' : '502 Bad Gateway';
      client.end(`HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    });
  });
  return server;
}

function sentence(error: unknown): string {
  return `svc: ${error instanceof Error ? error.message : String(error)}`;
}

/** Resolves a host to checked addresses, for the connection to use: a second lookup could return another address. */
async function vetted(host: string, { resolve, isForbidden }: EgressOptions): Promise<LookupFunction> {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const addresses = isIP(bare) === 0 ? await resolve(bare) : [{ address: bare, family: isIP(bare) }];
  const [first] = addresses;
  if (first === undefined) throw new Error(`'${bare}' has no address.`);
  const bad = addresses.find(({ address }) => isForbidden(address));
  if (bad !== undefined) {
    throw new Refusal(
      `'${bare}' is ${bad.address}, which is loopback, link-local or a cloud's metadata: a replica cannot reach services of the host there.`,
    );
  }
  return (_host, { all }, done) => (all === true ? done(null, [...addresses]) : done(null, first.address, first.family));
}

async function tunnel(asked: IncomingMessage, client: Duplex, head: Buffer, options: EgressOptions): Promise<void> {
  const target = /^(.+):(\d{1,5})$/.exec(asked.url ?? '');
  if (target === null) throw new Refusal('CONNECT needs HOST:PORT.');
  const [, host = '', port] = target;
  const find = await vetted(host, options);
  if (client.destroyed) return;
  const upstream = connect({ host, port: Number(port), lookup: find, autoSelectFamily: true, allowHalfOpen: true, noDelay: true });
  await new Promise<void>((resolve, reject) => {
    client.once('close', () => upstream.destroy());
    upstream.once('error', reject);
    upstream.once('connect', () => {
      upstream.off('error', reject);
      resolve();
    });
  });
  upstream.on('error', () => client.destroy());
  // After a regular end, the remaining data must still reach the client.
  upstream.once('close', () => upstream.readableEnded || client.destroy());
  client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) upstream.write(head);
  client.pipe(upstream).pipe(client);
}

async function relayRequest(asked: IncomingMessage, reply: ServerResponse, options: EgressOptions): Promise<void> {
  if (!URL.canParse(asked.url ?? '') || !asked.url?.startsWith('http://')) throw new Refusal('This is a proxy: ask for http://HOST/PATH.');
  const url = new URL(asked.url);
  const find = await vetted(url.hostname, options);
  // The client disconnected during the lookup. Its close event is past, so no handler would end the request.
  if (reply.closed) return;
  await new Promise<void>((resolve, reject) => {
    const upstream = request(url, { method: asked.method, headers: endToEnd(asked.headers), lookup: find, agent: false });
    upstream.once('error', reject);
    upstream.once('response', (answer) => {
      reply.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
      answer.pipe(reply);
      answer.once('error', reject);
      answer.once('close', resolve);
    });
    reply.once('close', () => upstream.destroy());
    asked.pipe(upstream);
  });
}

function endToEnd(headers: NodeJS.Dict<string | string[]>): OutgoingHttpHeaders {
  const named = String(headers['connection'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase());
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.includes(name) && !named.includes(name)));
}

if (import.meta.main) {
  const [, , socketPath = ''] = process.argv;
  process.umask(0o177);
  const temporary = `${socketPath}.new`;
  rmSync(temporary, { force: true });
  createEgress({ resolve: (host) => lookup(host, { all: true }), isForbidden: isForbiddenAddress }).listen(temporary, () => {
    renameSync(temporary, socketPath);
    process.stdout.write('1');
  });
  process.stdin.on('end', () => process.exit(0)).resume();
}
