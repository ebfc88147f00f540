import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { SvcError } from '../../shared/errors.ts';
import { shellQuote } from '../shell-quote.ts';
import type { ConnectionFiles } from './connection-files.ts';
import type { SshTarget } from './ssh-target.ts';

/** Updates the known host keys. Configured keys replace the present ones; a pinned key stays. */
export function prepareKnownHosts({ knownHosts, alias }: ConnectionFiles, { hostKeys }: SshTarget): void {
  mkdirSync(dirname(knownHosts), { recursive: true, mode: 0o700 });
  if (hostKeys === 'pin-first') return;
  const given = hostKeys.map((key) => `${alias} ${key.trim()}\n`).join('');
  // The same file holds the pinned keys of jump hosts.
  const others = existsSync(knownHosts)
    ? readFileSync(knownHosts, 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith(`${alias} `))
    : [];
  writeFileAtomic(knownHosts, given + others.map((line) => `${line}\n`).join(''));
}

/** The error for a machine with the wrong host key, by ssh's output. */
export function hostKeyError(files: ConnectionFiles, target: SshTarget, said: string): SvcError {
  const shown = /SHA256:[A-Za-z0-9+/]+/.exec(said)?.[0] ?? 'one of a kind that was not known';
  const isJumpHost = said.includes('jump-');
  const known = isJumpHost ? [] : knownFingerprints(files);
  const machine = isJumpHost ? `A machine on the way to ${target.name}` : `The machine ${target.name} (${target.host})`;
  const before = known.length === 0 ? 'another one is known' : `known ${known.length === 1 ? 'is' : 'are'} ${known.join(', ')}`;
  const isGiven = target.hostKeys !== 'pin-first' && !isJumpHost;
  return new SvcError('SVC_HOST_KEY', `${machine} shows the host key ${shown}, but ${before}. Nothing was sent to it.`, {
    hint: isGiven
      ? 'Compare with: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub there; if the new key is right, give it in place of the old one.'
      : `If it was reinstalled, forget the old key with: rm ${shellQuote(files.knownHosts)}; otherwise someone may intercept the connection.`,
  });
}

/** Of the accepted keys, in the format of `ssh-keygen -l`. */
function knownFingerprints({ knownHosts, alias }: ConnectionFiles): readonly string[] {
  if (!existsSync(knownHosts)) return [];
  return readFileSync(knownHosts, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(`${alias} `))
    .map((line) => fingerprintOf(line.split(' ')[2] ?? ''));
}

function fingerprintOf(key: string): string {
  return `SHA256:${createHash('sha256').update(Buffer.from(key, 'base64')).digest('base64').replace(/=+$/, '')}`;
}
