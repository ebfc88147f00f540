import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { shellQuote } from '../../remote/shell-quote.ts';
import { envVar } from '../../shared/env.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programEntry, programFile } from '../../shared/program-files.ts';
import type { IsolationKind, OutboundKind } from './isolation-kinds.ts';
import type { MachineFiles } from './machine-record.ts';

/** The address a machine has inside its network, from the block that is never routed on the internet (RFC 6598). */
export const insideAddress = '100.64.0.1';

/** Where programs inside find the proxy; above the range that systems take ephemeral ports from. */
const proxyPort = 61_080;

/** Where slirp4netns answers names (slirp4netns(1)), and where enter.sh tells pasta to. */
const nameServer = '10.0.2.3';

/**
 * Fills a machine's folder with what entering its isolation needs. Scripts are copied, as a shell reads them while they run and a newer version of
 * svc may replace its own.
 */
export function writeEnterFiles(files: MachineFiles, paths: HomePaths, isolation: IsolationKind, outbound: OutboundKind): void {
  mkdirSync(files.base, { recursive: true, mode: 0o700 });
  if (isolation === 'none') return;
  mkdirSync(files.tmp, { recursive: true });
  chmodSync(files.tmp, 0o1777);
  copyFileSync(programFile('src/node/enter.sh'), files.enter);
  copyFileSync(programFile('src/node/forwarder.mjs'), files.forwarder);
  if (outbound === 'slirp4netns' || outbound === 'pasta')
    writeFileSync(
      files.resolvConf,
      `nameserver ${nameServer}
${searchLines()}`,
    );
  const settings: Readonly<Record<string, string>> = {
    kind: isolation,
    node: process.execPath,
    socket: files.socket,
    address: insideAddress,
    keep: keptBelowTmp(paths).join('\n'),
    outbound,
    proxy_socket: files.proxySocket,
    proxy_port: String(proxyPort),
    egress: programEntry('node/egress'),
  };
  const lines = Object.entries(settings).map(([name, value]) => `svc_${name}=${shellQuote(value)}\n`);
  writeFileSync(files.enterConf, lines.join(''), { mode: 0o600 });
}

/** Folders that a program needs although they lie below /tmp, of which it sees its own. */
function keptBelowTmp(paths: HomePaths): readonly string[] {
  const needed = [paths.home, paths.runtimeDir, envVar('HOME') ?? '', dirname(process.execPath)];
  return [...new Set(needed)].filter((dir) => dir.startsWith('/tmp/'));
}

/** How the host completes short names; its servers are of no use inside. */
function searchLines(): string {
  try {
    const lines = readFileSync('/etc/resolv.conf', 'utf8').split('\n');
    return lines
      .filter((line) => /^(?:search|domain|options)\s/.test(line))
      .map((line) => `${line}\n`)
      .join('');
  } catch {
    // A host without the file completes nothing.
    return '';
  }
}
