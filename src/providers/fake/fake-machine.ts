import { formatJobRecord, type JobRecord, type RecordedProcess } from '../../remote/job-record.ts';
import type { MemoryKills } from '../../remote/remote.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import type { LateRefusal, MachineId, MachineNotice, MachineSilence, MachineSpec, Offer } from '../provider.ts';

/** How a machine's jobs behave. Times are ms. */
export interface JobBehaviour {
  readonly setupMs?: number;
  readonly setupExitCode?: number;
  /** From the start of `run` until it ends by itself; absent: it does not end. */
  readonly runMs?: number;
  readonly exitCode?: number;
  /** From the start of `run` until its program answers. */
  readonly readyAfterMs?: number;
  readonly memoryKills?: MemoryKills;
  /** From SIGTERM until its program ends by itself. */
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

/** The boot id of all fake machines. */
export const fakeBootId = 'fake-boot';

const sigkill = 137;
const sigterm = 143;

/** One machine in memory, with its files and one job at a time; of a multi-node machine, the first node. */
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
  /** All nodes by rank, including this one. */
  readonly nodes: readonly FakeMachine[];
  goneReason: 'preempted' | 'deleted' | 'unknown' | undefined;
  message: string | undefined;
  /** An identical machine would not run either. */
  isHopeless = false;
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

  /** Does nothing if the job was already started. */
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

  async stopJob(dir: string, graceMs: number): Promise<void> {
    if (this.#job?.dir !== dir || this.#job.record.phase === 'ended') return;
    const { stopMs = 0 } = this.#behaviour;
    if (stopMs > 0) await this.#clock.sleep(Math.min(stopMs, graceMs));
    this.#endJob(stopMs <= graceMs ? sigterm : sigkill, 'run');
  }

  killProgram(): void {
    this.#endJob(sigkill, 'run');
  }

  /** Leaves no record, as when the kernel kills the runner too (OOM). */
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

/** The base folder of a fake machine. */
export function fakeBaseDir({ id, rank }: FakeMachine): string {
  return rank === 0 ? `/fake/${id}` : `/fake/${id}-${rank}`;
}
