import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { enterConf, insideResolvConf } from '../../remote/isolation/enter-settings.ts';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';
import { envVar } from '../../shared/env.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programEntry, programFile } from '../../shared/program-files.ts';
import type { MachineFiles } from './machine-record.ts';

/**
 * Fills a machine's folder with the files that enter its isolation. Scripts are copied: a shell reads them while they
 * run, and a newer version of svc may replace its own.
 */
export function writeEnterFiles(files: MachineFiles, paths: HomePaths, isolation: IsolationKind, outbound: OutboundKind): void {
  mkdirSync(files.base, { recursive: true, mode: 0o700 });
  if (isolation === 'none') return;
  mkdirSync(files.tmp, { recursive: true });
  chmodSync(files.tmp, 0o1777);
  copyFileSync(programFile('src/node/enter.sh'), files.enter);
  copyFileSync(programFile('src/node/confine.sh'), files.confine);
  copyFileSync(programFile('src/node/forwarder.mjs'), files.forwarder);
  const resolvConf = insideResolvConf(outbound, hostResolvConf());
  if (resolvConf !== undefined) writeFileSync(files.resolvConf, resolvConf);
  const settings = {
    isolation,
    outbound,
    node: process.execPath,
    socket: files.socket,
    proxySocket: files.proxySocket,
    egress: programEntry('node/egress'),
    keep: keptBelowTmp(),
    hide: [paths.home, paths.runtimeDir],
  };
  writeFileSync(files.enterConf, enterConf(settings), { mode: 0o600 });
}

/** Folders below /tmp that a program needs, although it sees a /tmp of its own. */
function keptBelowTmp(): readonly string[] {
  const needed = [envVar('HOME') ?? '', dirname(process.execPath)];
  return [...new Set(needed)].filter((dir) => dir.startsWith('/tmp/'));
}

function hostResolvConf(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8');
  } catch {
    // Without the file, short names are not completed.
    return '';
  }
}
