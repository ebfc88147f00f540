import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { enterConf, insideResolvConf } from '../../remote/isolation/enter-settings.ts';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';
import { envVar } from '../../shared/env.ts';
import type { HomePaths } from '../../shared/paths.ts';
import { programEntry, programFile } from '../../shared/program-files.ts';
import type { MachineFiles } from './machine-record.ts';

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
  const resolvConf = insideResolvConf(outbound, hostResolvConf());
  if (resolvConf !== undefined) writeFileSync(files.resolvConf, resolvConf);
  const settings = {
    isolation,
    outbound,
    node: process.execPath,
    socket: files.socket,
    proxySocket: files.proxySocket,
    egress: programEntry('node/egress'),
    keep: keptBelowTmp(paths),
  };
  writeFileSync(files.enterConf, enterConf(settings), { mode: 0o600 });
}

/** Folders that a program needs although they lie below /tmp, of which it sees its own. */
function keptBelowTmp(paths: HomePaths): readonly string[] {
  const needed = [paths.home, paths.runtimeDir, envVar('HOME') ?? '', dirname(process.execPath)];
  return [...new Set(needed)].filter((dir) => dir.startsWith('/tmp/'));
}

function hostResolvConf(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8');
  } catch {
    // A host without the file completes nothing.
    return '';
  }
}
