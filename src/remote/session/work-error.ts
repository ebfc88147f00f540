import { SvcError } from '../../shared/errors.ts';
import type { SessionMachine } from './session-machine.ts';

/** Longest part of a tool's words that goes into a message. */
const longestReason = 300;

/** Why work with files on a machine failed, by what its tools said. `what` is a clause without its end. */
export function workError(machine: Pick<SessionMachine, 'name' | 'host'>, what: string, said: string): SvcError {
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  const reason = lines.at(0)?.trim().slice(0, longestReason) ?? 'its tools did not say why';
  if (/No space left on device|Disk quota exceeded/.test(said))
    return new SvcError('SVC_NO_SPACE', `${what} on ${machine.name}: its disk is full.`, { hint: `Free space on ${machine.host}.` });
  return new SvcError('SVC_PLACE_FAILED', `${what} on ${machine.name}: ${reason}.`, {
    hint: `Check the folder and its permissions on ${machine.host}.`,
  });
}
