import { existsSync } from 'node:fs';
import { whyNoNamespaces } from '../namespaces.ts';

/** Programs of the testbed and of what is tested, and the Debian package of each. */
const programs: Readonly<Record<string, string>> = {
  '/usr/sbin/sshd': 'openssh-server',
  '/usr/bin/ssh': 'openssh-client',
  '/usr/bin/rsync': 'rsync',
  '/usr/bin/sudo': 'sudo',
  '/usr/sbin/nft': 'nftables',
  '/usr/bin/gcc': 'gcc libc6-dev',
};

/** Why there can be no test hosts here; undefined when there can. In CI there must be: then it throws instead. */
export function whyNoTestHosts(): string | undefined {
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
