import { shellQuote } from '../shell-quote.ts';
import type { IsolationKind, OutboundKind } from './kinds.ts';
import { seccompFilter } from './seccomp.ts';

/** The machine's address inside its network; the internet never routes this block (RFC 6598). */
const insideAddress = '100.64.0.1';

/** Port of the proxy for programs inside, above the usual ephemeral ports. */
export const proxyPort = 61_080;

/** slirp4netns answers DNS there (slirp4netns(1)); enter.sh configures pasta to do so. */
const nameServer = '10.0.2.3';

/** Settings to enter one machine's isolation. Paths are absolute on the computer that runs the machine. */
export interface EnterSettings {
  readonly isolation: IsolationKind;
  readonly outbound: OutboundKind;
  /** Node binary for the inbound forwarder and the outbound proxy. */
  readonly node: string;
  /** Sockets for inbound connections and for the proxy. */
  readonly socket: string;
  readonly proxySocket: string;
  readonly egress: string;
  /** Folders below /tmp that stay visible in the machine's /tmp. */
  readonly keep: readonly string[];
  /** Hidden from the program: `SVC_HOME` and its sockets' folder. Of the machine's folder only `base` stays visible. */
  readonly hide: readonly string[];
}

/** The text of `enter.conf`, which `src/node/enter.sh` reads as shell. */
export function enterConf(settings: EnterSettings): string {
  const values: Readonly<Record<string, string>> = {
    kind: settings.isolation,
    node: settings.node,
    socket: settings.socket,
    address: insideAddress,
    keep: settings.keep.join('\n'),
    hide: settings.hide.join('\n'),
    outbound: settings.outbound,
    proxy_socket: settings.proxySocket,
    proxy_port: String(proxyPort),
    egress: settings.egress,
    seccomp: seccompFilter(),
  };
  return Object.entries(values)
    .map(([name, value]) => `svc_${name}=${shellQuote(value)}\n`)
    .join('');
}

/**
 * The machine's /etc/resolv.conf; undefined: the host's. Keeps the search settings of `hostText`, the host's file; its
 * servers cannot be reached from inside.
 */
export function insideResolvConf(outbound: OutboundKind, hostText: string): string | undefined {
  if (outbound !== 'slirp4netns' && outbound !== 'pasta') return undefined;
  const kept = hostText.split('\n').filter((line) => /^(?:search|domain|options)\s/.test(line));
  return [`nameserver ${nameServer}`, ...kept, ''].join('\n');
}

/** The last line of an error from entering, without the script's position; undefined when there is none. */
export function enterComplaint(text: string): string | undefined {
  const line = text
    .trim()
    .split('\n')
    .at(-1)
    ?.replace(/^.*enter\.sh: (?:line )?(?:\d+: )?(?:exec: )?/, '');
  return line === '' ? undefined : line;
}
