import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';

/** An SSH key in the forms that OpenSSH reads. */
export interface SshKey {
  /** One line: type, key, comment. */
  readonly publicLine: string;
  /** The private key file. Secret. */
  readonly privateFile: string;
}

/** Prefix of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, section 7). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const keyType = 'ssh-ed25519';
const blockSize = 8;
const lineLength = 70;

/**
 * The Ed25519 key of 32 secret bytes: the same bytes always give the same text.
 * https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key
 */
export function sshKeyFromSeed(seed: Buffer, comment: string): SshKey {
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: 'der', type: 'pkcs8' });
  const point = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);
  const publicBlob = Buffer.concat([text(keyType), bytes(point)]);
  // Both halves must be equal: readers check the decryption by them.
  const check = createHash('sha256').update('check').update(seed).digest().subarray(0, 4);
  const secret = Buffer.concat([check, check, publicBlob, bytes(Buffer.concat([seed, point])), text(comment)]);
  const padding = Buffer.from(Array.from({ length: (blockSize - (secret.length % blockSize)) % blockSize }, (_, index) => index + 1));
  const file = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    text('none'),
    text('none'),
    text(''),
    number(1),
    bytes(publicBlob),
    bytes(Buffer.concat([secret, padding])),
  ]).toString('base64');
  const lines = file.match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? [];
  const [begin, end] = ['BEGIN', 'END'].map((word) => `-----${word} OPENSSH PRIVATE KEY-----`);
  return {
    publicLine: `${keyType} ${publicBlob.toString('base64')} ${comment}`,
    privateFile: `${[begin, ...lines, end].join('\n')}\n`,
  };
}

function number(value: number): Buffer {
  const field = Buffer.alloc(4);
  field.writeUInt32BE(value);
  return field;
}

const bytes = (content: Buffer): Buffer => Buffer.concat([number(content.length), content]);
const text = (content: string): Buffer => bytes(Buffer.from(content));

const keyPath = '/etc/ssh/ssh_host_ed25519_key';

/**
 * The cloud-init script. It installs a host key that the machine's creator knows, so a connection reaches the right
 * machine or fails. Readers of the script, such as the account's administrators, can impersonate only this machine.
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
