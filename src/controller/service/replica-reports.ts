import { noReport, type ReplicaReport } from '../../domain/replica/replica-report.ts';

/** Reports of executors, probes and providers on the replicas of a service since this process started. */
export class ReplicaReports {
  readonly #reports = new Map<number, ReplicaReport>();
  readonly #onChange: () => void;

  /** `onChange` is called after each report on which the endpoint set depends. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  of(id: number): ReplicaReport {
    return this.#reports.get(id) ?? noReport;
  }

  get all(): ReadonlyMap<number, ReplicaReport> {
    return this.#reports;
  }

  report(id: number, facts: Partial<ReplicaReport>): void {
    const before = this.of(id);
    const after = { ...before, ...facts, end: before.end ?? facts.end };
    this.#reports.set(id, after);
    if (before.probe !== after.probe || before.isGone !== after.isGone) this.#onChange();
  }

  /** The reported end could not be written, so it may be reported again. */
  withdrawEnd(id: number): void {
    this.#reports.set(id, { ...this.of(id), end: undefined });
  }

  /** Call when the replica has ended. */
  forget(id: number): void {
    this.#reports.delete(id);
  }
}
