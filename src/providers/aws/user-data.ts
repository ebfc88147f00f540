import type { SshKey } from './ssh-key.ts';

const keyPath = '/etc/ssh/ssh_host_ed25519_key';

/**
 * What a machine does at its first start, as a shell script for cloud-init: it takes the host key that its maker knows already, so that the
 * first connection is to the right machine or to none. Whoever can read the script (the account's administrators, and programs on the machine
 * through its metadata) can pose as this one machine and no other.
 */
export function userData(hostKey: SshKey): string {
  return `#!/bin/sh
# The host key by which the machine's owner knows it.
umask 077
cat >${keyPath}.new <<'END_OF_KEY'
${hostKey.privateFile}END_OF_KEY
cat >${keyPath}.pub.new <<'END_OF_KEY'
${hostKey.publicLine}
END_OF_KEY
chmod 644 ${keyPath}.pub.new
mv -f ${keyPath}.pub.new ${keyPath}.pub
mv -f ${keyPath}.new ${keyPath}
for name in ssh sshd; do
  if command -v systemctl >/dev/null 2>&1; then systemctl try-restart "$name.service" 2>/dev/null; else service "$name" restart 2>/dev/null; fi
done
exit 0
`;
}
