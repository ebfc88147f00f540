import { SvcError } from '../../shared/errors.ts';
import { quoteWord } from '../shell-quote.ts';
import type { ConnectionFiles } from './connection-files.ts';
import { hostKeyError } from './host-keys.ts';
import type { SshTarget } from './ssh-target.ts';

const longestReason = 300;

/** The error for a failed connection, by ssh's output. */
export function connectError(files: ConnectionFiles, target: SshTarget, said: string): SvcError {
  if (/HOST IDENTIFICATION HAS CHANGED|Host key verification failed|host key is known for|REVOKED HOST KEY/.test(said))
    return hostKeyError(files, target, said);
  if (
    /Permission denied|Too many authentication failures|UNPROTECTED PRIVATE KEY|invalid format|error in libcrypto|incorrect passphrase/.test(
      said,
    )
  )
    return refusedError(target, said);
  if (/Bad configuration option|Bad owner or permissions|terminating, \d+ bad configuration/.test(said))
    return new SvcError('SVC_HOST_UNFIT', `ssh cannot use its configuration for ${target.name}: ${lastLine(said)}`, {
      hint: 'Correct ~/.ssh/config as ssh says.',
    });
  return new SvcError('SVC_SSH', `The machine ${target.name} does not answer over SSH: ${lastLine(said) || 'ssh ended without a word'}.`, {
    hint: `Check that it is on and reachable: ${tryCommand(target)}`,
  });
}

/** ssh silently skips a private key that does not exist. */
export function missingKeyError(target: SshTarget): SvcError {
  return new SvcError('SVC_CREDENTIALS', `The key ${target.identityFile ?? ''} for ${target.name} does not exist.`, {
    hint: 'Name a private key that is there, or make one with: ssh-keygen -t ed25519',
  });
}

/** The error for a connection that broke, or was silent for too long. */
export function lostError(target: SshTarget, what: string): SvcError {
  return new SvcError('SVC_SSH', `The connection to ${target.name} ${what}.`, {
    hint: `Check that it is on and reachable: ${tryCommand(target)}`,
  });
}

function refusedError(target: SshTarget, said: string): SvcError {
  const user = target.user === undefined ? 'the user' : `the user ${target.user}`;
  const unreadable = /UNPROTECTED PRIVATE KEY|invalid format|error in libcrypto|incorrect passphrase/.test(said);
  if (unreadable && target.identityFile !== undefined) {
    return new SvcError('SVC_CREDENTIALS', `The key ${target.identityFile} for ${target.name} cannot be used: ${reasonOf(said)}`, {
      hint: 'It must be a private key without a passphrase (or in ssh-agent) that only its owner can read: chmod 600',
    });
  }
  return new SvcError(
    'SVC_CREDENTIALS',
    `The machine ${target.name} does not let ${user} in with ${target.identityFile ?? 'any key there is'}.`,
    {
      hint: `Put the public key into ~/.ssh/authorized_keys there, or name another user or key; one with a passphrase has to be in ssh-agent. Try: ${tryCommand(target)}`,
    },
  );
}

function tryCommand({ host, port, user, identityFile, proxyJump }: SshTarget): string {
  const options = [
    ...(identityFile === undefined ? [] : ['-i', identityFile]),
    ...(proxyJump === undefined ? [] : ['-J', proxyJump]),
    ...(port === undefined ? [] : ['-p', String(port)]),
  ];
  const words = ['ssh', ...options, user === undefined ? host : `${user}@${host}`];
  return words.map(quoteWord).join(' ');
}

function reasonOf(said: string): string {
  return /(?:Permissions .* are too open|Load key .*)/.exec(said)?.[0] ?? lastLine(said);
}

function lastLine(said: string): string {
  const lines = said
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  // With a jump host, the last line comes from the outer ssh, which knows less.
  const line = lines.findLast((one) => !/UNKNOWN port|kex_exchange_identification: Connection closed/.test(one)) ?? lines.at(-1) ?? '';
  return line.replace(/[.\r]+$/, '').slice(0, longestReason);
}
