import type { NewEvent } from './records.ts';

/** Content of an event about a service or cluster as a whole. */
interface SubjectChange {
  readonly at: number;
  /** Absent when no state changes. */
  readonly from?: string;
  readonly to?: string;
  readonly cause: string;
  readonly message: string;
}

/** One line of the history about a service or cluster as a whole. */
export function subjectEvent(subject: { readonly name: string; readonly key: string }, change: SubjectChange): NewEvent {
  const { at, from = null, to = null, cause, message } = change;
  return { at, subject: subject.name, subjectKey: subject.key, replicaId: null, from, to, cause, message };
}
