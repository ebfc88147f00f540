import { SvcError } from '../../shared/errors.ts';
import type { SessionMachine } from './session-machine.ts';

const longestReason = 300;

/** For tools whose output svc parses. LANGUAGE affects only messages; `LC_ALL` would also change how names are read. */
export const plainWords = { LANGUAGE: 'en' } as const;

/** The error for failed work on files, by the tools' output in `plainWords`. `what` is a clause without its end. */
export function workError(machine: Pick<SessionMachine, 'name' | 'host'>, what: string, said: string): SvcError {
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  const reason = lines.at(0)?.trim().slice(0, longestReason) ?? 'its tools did not say why';
  if (isAboutSpace(said))
    return new SvcError('SVC_NO_SPACE', `${what} on ${machine.name}: its disk is full.`, { hint: `Free space on ${machine.host}.` });
  return new SvcError('SVC_PLACE_FAILED', `${what} on ${machine.name}: ${reason}.`, {
    hint: `Check the folder and its permissions on ${machine.host}.`,
  });
}

/** Whether a tool found no space left, by the messages of glibc and musl. */
export function isAboutSpace(said: string): boolean {
  return /no space left on device|quota exceeded/i.test(said);
}
