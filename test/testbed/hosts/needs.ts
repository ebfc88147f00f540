import { existsSync } from 'node:fs';
import { whyNoNamespaces } from '../namespaces.ts';

/** Programs of the testbed and of the tested code, with the Debian package of each. */
const programs: Readonly<Record<string, string>> = {
  '/usr/sbin/sshd': 'openssh-server',
  '/usr/bin/ssh': 'openssh-client',
  '/usr/bin/rsync': 'rsync',
  '/usr/bin/sudo': 'sudo',
  '/usr/sbin/nft': 'nftables',
  '/usr/bin/gcc': 'gcc libc6-dev',
};

/** Returns why the testbed cannot run; undefined when it can. In CI it throws instead, because the testbed must run. */
export function whyNoTestSshHosts(): string | undefined {
  const reason = findReason();
  if (reason !== undefined && process.env['CI'] !== undefined && process.getuid?.() === 0) throw new Error(`no test hosts: ${reason}`);
  return reason;
}

function findReason(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can make them';
  const missing = Object.entries(programs).filter(([path]) => !existsSync(path));
  if (missing.length > 0) return `not installed: ${missing.map(([, name]) => name).join(' ')}`;
  return whyNoNamespaces();
}
