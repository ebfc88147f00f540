import { formatJobRecord, type JobRecord, type RecordedProcess } from '../../remote/job-record.ts';
import type { MemoryKills } from '../../remote/remote.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import type { LateRefusal, MachineId, MachineNotice, MachineSilence, MachineSpec, Offer } from '../provider.ts';

/** A machine's jobs. Times are ms. */
export interface JobBehaviour {
  readonly setupMs?: number;
  /** Absent: 0. */
  readonly setupExitCode?: number;
  /** Until `run` ends by itself; absent: never. */
  readonly runMs?: number;
  readonly exitCode?: number;
  /** From the start of run until its program answers; absent: at once. */
  readonly readyAfterMs?: number;
  /** Kills that the machine's own memory limit reports. */
  readonly memoryKills?: MemoryKills;
  /** From SIGTERM until its program ends; absent: at once. */
  readonly stopMs?: number;
}

interface FakeMachineSettings {
  readonly id: MachineId;
  readonly key: string;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly clock: Clock;
  /** Monotonic ms. */
  readonly runsAt: number;
  readonly behaviourOf: (rank: number) => JobBehaviour;
  readonly onChange: () => void;
}

/** Of all fake machines. */
export const fakeBootId = 'fake-boot';

const sigkill = 137;
const sigterm = 143;

/** A machine in memory, with files and one job at a time. With several nodes, it is the first one. */
export class FakeMachine {
  readonly id: MachineId;
  readonly key: string;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly tags: Readonly<Record<string, string>>;
  readonly host: string;
  readonly files = new Map<string, string>();
  readonly living = new Set<number>();
  readonly rank: number;
  /** All nodes of the machine by rank, including this one. */
  readonly nodes: readonly FakeMachine[];
  goneReason: 'preempted' | 'deleted' | 'unknown' | undefined;
  /** While it boots, or when it is gone. */
  message: string | undefined;
  /** Nor would an identical machine run. */
  isHopeless = false;
  /** Its provider ended it before it ran. */
  refusal: LateRefusal | undefined;
  notice: MachineNotice | undefined;
  silence: MachineSilence | undefined;
  isCutOff = false;
  readonly #clock: Clock;
  readonly #runsAt: number;
  readonly #behaviour: JobBehaviour;
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, Set<() => void>>();
  #cancelTimer: CancelTimer | undefined;
  #nextPid = 100;
  #job: { readonly dir: string; readonly servesAt: number | undefined; record: JobRecord } | undefined;

  constructor(settings: FakeMachineSettings, rank = 0) {
    this.rank = rank;
    this.id = settings.id;
    this.key = settings.key;
    this.offer = settings.offer;
    this.spec = settings.spec;
    this.tags = settings.spec.tags;
    this.host = rank === 0 ? `${settings.id}.fake` : `${settings.id}-${rank}.fake`;
    this.#clock = settings.clock;
    this.#runsAt = settings.runsAt;
    this.#behaviour = settings.behaviourOf(rank);
    this.#onChange = settings.onChange;
    const others = rank === 0 ? Array.from({ length: settings.spec.nodes - 1 }, (_, index) => new FakeMachine(settings, index + 1)) : [];
    this.nodes = [this, ...others];
  }

  get memoryKills(): MemoryKills | undefined {
    return this.#behaviour.memoryKills;
  }

  get isRunning(): boolean {
    return this.goneReason === undefined && this.#clock.monotonic() >= this.#runsAt;
  }

  isServing(): boolean {
    return this.isRunning && !this.isCutOff && this.#job?.record.phase === 'run' && this.#clock.monotonic() >= (this.#job.servesAt ?? 0);
  }

  end(reason: 'preempted' | 'deleted' | 'unknown', message?: string): void {
    if (this.goneReason === undefined) this.message = message;
    this.goneReason ??= reason;
    this.#cancelTimer?.();
    this.living.clear();
    this.#watchers.clear();
    for (const node of this.nodes) if (node !== this) node.end(reason);
    this.#onChange();
  }

  /** Why it does not run yet. */
  say(message: string): void {
    this.message = message;
    this.#onChange();
  }

  write(path: string, content: string): void {
    this.files.set(path, content);
    for (const notify of this.#watchers.get(path.slice(0, path.lastIndexOf('/'))) ?? []) notify();
    const job = this.#job;
    if (job?.record.phase === 'waiting' && path === `${job.dir}/go`) this.#run(job.dir, job.record);
  }

  watch(dir: string, onChange: () => void, signal: AbortSignal): void {
    const watchers = this.#watchers.get(dir) ?? new Set();
    this.#watchers.set(dir, watchers.add(onChange));
    signal.addEventListener('abort', () => watchers.delete(onChange), { once: true });
  }

  /** As the runner; a job that was already started is left alone. */
  startJob(dir: string): void {
    if (this.files.has(`${dir}/status`)) return;
    const record = { bootId: fakeBootId, runner: this.#spawn(), program: this.#spawn(), ...noEnd } as const;
    this.write(`${dir}/job.log`, '');
    const { setupMs = 0, setupExitCode = 0 } = this.#behaviour;
    if (!this.files.has(`${dir}/setup.sh`)) return this.#startRun(dir, record);
    this.#record(dir, { ...record, phase: 'setup' });
    this.#after(setupMs, () => (setupExitCode === 0 ? this.#startRun(dir, record) : this.#endJob(setupExitCode, 'setup')));
    return undefined;
  }

  /** Settles when the job has ended. */
  async stopJob(dir: string, graceMs: number): Promise<void> {
    if (this.#job?.dir !== dir || this.#job.record.phase === 'ended') return;
    const { stopMs = 0 } = this.#behaviour;
    if (stopMs > 0) await this.#clock.sleep(Math.min(stopMs, graceMs));
    this.#endJob(stopMs <= graceMs ? sigterm : sigkill, 'run');
  }

  killProgram(): void {
    this.#endJob(sigkill, 'run');
  }

  /** Leaves no record, as when the kernel kills the runner too for lack of memory. */
  loseProcesses(): void {
    this.#cancelTimer?.();
    this.living.clear();
  }

  #startRun(dir: string, started: Omit<JobRecord, 'phase'>): void {
    const waits = this.files.get(`${dir}/settings`)?.includes('svc_waits=yes') === true && this.files.has(`${dir}/run.sh`);
    if (waits && !this.files.has(`${dir}/go`)) this.#record(dir, { ...started, phase: 'waiting' });
    else this.#run(dir, started);
  }

  #run(dir: string, started: Omit<JobRecord, 'phase'>): void {
    const { runMs, exitCode = 0, readyAfterMs = 0 } = this.#behaviour;
    this.#record(dir, { ...started, phase: 'run', startedAt: this.#clock.now() }, this.#clock.monotonic() + readyAfterMs);
    if (!this.files.has(`${dir}/run.sh`)) this.#endJob(0, 'run');
    else if (runMs !== undefined) this.#after(runMs, () => this.#endJob(exitCode, 'run'));
  }

  #endJob(exitCode: number, phase: 'setup' | 'run'): void {
    if (this.#job === undefined || this.#job.record.phase === 'ended' || this.goneReason !== undefined) return;
    this.#cancelTimer?.();
    this.living.clear();
    const signal = exitCode === sigkill ? 'SIGKILL' : exitCode === sigterm ? 'SIGTERM' : undefined;
    const failedPhase = exitCode === 0 ? undefined : phase;
    this.#record(this.#job.dir, { ...this.#job.record, phase: 'ended', endedAt: this.#clock.now(), exitCode, signal, failedPhase });
  }

  #record(dir: string, record: JobRecord, servesAt?: number): void {
    this.#job = { dir, record, servesAt };
    this.write(`${dir}/status`, formatJobRecord(record));
  }

  #after(ms: number, then: () => void): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#clock.after(ms, then);
  }

  #spawn(): RecordedProcess {
    this.#nextPid += 1;
    this.living.add(this.#nextPid);
    return { pid: this.#nextPid, startTicks: this.#nextPid };
  }
}

const noEnd = { startedAt: undefined, endedAt: undefined, exitCode: undefined, signal: undefined, failedPhase: undefined } as const;

/** Base folder of a fake machine. */
export function fakeBaseDir({ id, rank }: FakeMachine): string {
  return rank === 0 ? `/fake/${id}` : `/fake/${id}-${rank}`;
}
