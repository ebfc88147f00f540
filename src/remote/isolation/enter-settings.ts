import { shellQuote } from '../shell-quote.ts';
import type { IsolationKind, OutboundKind } from './kinds.ts';

/** The address a machine has inside its network, from the block that is never routed on the internet (RFC 6598). */
const insideAddress = '100.64.0.1';

/** Where programs inside find the proxy; above the range that systems take ephemeral ports from. */
const proxyPort = 61_080;

/** Where slirp4netns answers names (slirp4netns(1)), and where enter.sh tells pasta to. */
const nameServer = '10.0.2.3';

/** What entering one machine's isolation needs. All paths are absolute on the computer that the machine is on. */
export interface EnterSettings {
  readonly isolation: IsolationKind;
  readonly outbound: OutboundKind;
  /** The Node binary that runs the way in and, as a proxy, the way out. */
  readonly node: string;
  /** The way in, and the way to the proxy. */
  readonly socket: string;
  readonly proxySocket: string;
  /** The script of the proxy. */
  readonly egress: string;
  /** Folders below /tmp that stay visible in the machine's own /tmp. */
  readonly keep: readonly string[];
}

/** `enter.conf`, which `src/node/enter.sh` reads as shell. */
export function enterConf(settings: EnterSettings): string {
  const values: Readonly<Record<string, string>> = {
    kind: settings.isolation,
    node: settings.node,
    socket: settings.socket,
    address: insideAddress,
    keep: settings.keep.join('\n'),
    outbound: settings.outbound,
    proxy_socket: settings.proxySocket,
    proxy_port: String(proxyPort),
    egress: settings.egress,
  };
  return Object.entries(values)
    .map(([name, value]) => `svc_${name}=${shellQuote(value)}\n`)
    .join('');
}

/**
 * What a machine sees as /etc/resolv.conf; undefined where it sees the host's. `hostText` is the host's: it says how short names are completed,
 * while its servers are of no use inside.
 */
export function insideResolvConf(outbound: OutboundKind, hostText: string): string | undefined {
  if (outbound !== 'slirp4netns' && outbound !== 'pasta') return undefined;
  const kept = hostText.split('\n').filter((line) => /^(?:search|domain|options)\s/.test(line));
  return [`nameserver ${nameServer}`, ...kept, ''].join('\n');
}

/** The last line of what entering complained about, without the place in our script; undefined for nothing. */
export function enterComplaint(text: string): string | undefined {
  const line = text
    .trim()
    .split('\n')
    .at(-1)
    ?.replace(/^.*enter\.sh: (?:line )?(?:\d+: )?(?:exec: )?/, '');
  return line === '' ? undefined : line;
}
