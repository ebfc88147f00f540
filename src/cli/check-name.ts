import { maxNameLength, nameProblem } from '../domain/names.ts';
import { SvcError } from '../shared/errors.ts';

/** Throws SVC_BAD_NAME when a service or cluster cannot have the name. */
export function checkName(name: string): void {
  const problem = nameProblem(name);
  if (problem === undefined) return;
  const hint = name.length > maxNameLength ? `Use at most ${maxNameLength} characters; this name has ${name.length}.` : undefined;
  throw new SvcError('SVC_BAD_NAME', problem, { hint });
}
