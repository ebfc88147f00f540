import { formatJobRecord, type JobRecord, type RecordedProcess } from '../../remote/job-record.ts';
import type { CancelTimer, Clock } from '../../shared/clock.ts';
import type { MachineId, MachineNotice, MachineSpec, Offer } from '../provider.ts';

/** What the jobs of a machine do. Times are ms. */
export interface JobBehaviour {
  readonly setupMs?: number;
  /** 0 when absent. */
  readonly setupExitCode?: number;
  /** Until run ends by itself; it runs on when absent. */
  readonly runMs?: number;
  readonly exitCode?: number;
  /** From the start of run until its program answers; at once when absent. */
  readonly readyAfterMs?: number;
  /** From SIGTERM until its program ends by itself; at once when absent. */
  readonly stopMs?: number;
}

/** What makes a machine. */
export interface FakeMachineSettings {
  readonly id: MachineId;
  readonly key: string;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly clock: Clock;
  /** Monotonic ms. */
  readonly runsAt: number;
  readonly behaviour: JobBehaviour;
}

/** The only boot of every fake machine. */
export const fakeBootId = 'fake-boot';

const sigkill = 137;
const sigterm = 143;

/** One machine in memory, with its files and one job at a time. */
export class FakeMachine {
  readonly id: MachineId;
  readonly key: string;
  readonly offer: Offer;
  readonly spec: MachineSpec;
  readonly tags: Readonly<Record<string, string>>;
  readonly host: string;
  readonly files = new Map<string, string>();
  readonly living = new Set<number>();
  goneReason: 'preempted' | 'deleted' | undefined;
  /** What its place says beforehand. */
  notice: MachineNotice | undefined;
  readonly #clock: Clock;
  readonly #runsAt: number;
  readonly #behaviour: JobBehaviour;
  readonly #watchers = new Map<string, Set<() => void>>();
  #cancelTimer: CancelTimer | undefined;
  #nextPid = 100;
  #job: { readonly dir: string; readonly servesAt: number | undefined; record: JobRecord } | undefined;

  constructor(settings: FakeMachineSettings) {
    this.id = settings.id;
    this.key = settings.key;
    this.offer = settings.offer;
    this.spec = settings.spec;
    this.tags = settings.spec.tags;
    this.host = `${settings.id}.fake`;
    this.#clock = settings.clock;
    this.#runsAt = settings.runsAt;
    this.#behaviour = settings.behaviour;
  }

  get isRunning(): boolean {
    return this.goneReason === undefined && this.#clock.monotonic() >= this.#runsAt;
  }

  isServing(): boolean {
    return this.isRunning && this.#job?.record.phase === 'run' && this.#clock.monotonic() >= (this.#job.servesAt ?? 0);
  }

  /** It is gone from now on, with everything on it. */
  end(reason: 'preempted' | 'deleted'): void {
    this.goneReason ??= reason;
    this.#cancelTimer?.();
    this.living.clear();
    this.#watchers.clear();
  }

  write(path: string, content: string): void {
    this.files.set(path, content);
    for (const tell of this.#watchers.get(path.slice(0, path.lastIndexOf('/'))) ?? []) tell();
  }

  watch(dir: string, onChange: () => void, signal: AbortSignal): void {
    const watchers = this.#watchers.get(dir) ?? new Set();
    this.#watchers.set(dir, watchers.add(onChange));
    signal.addEventListener('abort', () => watchers.delete(onChange), { once: true });
  }

  /** Starts a job as the runner would; one that was started before is left alone. */
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

  /** Asks the job to end; settles when it has. */
  async stopJob(dir: string, graceMs: number): Promise<void> {
    if (this.#job?.dir !== dir || this.#job.record.phase === 'ended') return;
    const { stopMs = 0 } = this.#behaviour;
    if (stopMs > 0) await this.#clock.sleep(Math.min(stopMs, graceMs));
    this.#endJob(stopMs <= graceMs ? sigterm : sigkill, 'run');
  }

  /** Kills the program, as something outside may. */
  killProgram(): void {
    this.#endJob(sigkill, 'run');
  }

  /** Makes every process vanish without a word, as when the machine runs out of memory and takes the runner too. */
  loseProcesses(): void {
    this.#cancelTimer?.();
    this.living.clear();
  }

  #startRun(dir: string, started: Omit<JobRecord, 'phase'>): void {
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
export function fakeBaseDir(machine: FakeMachine): string {
  return `/fake/${machine.id}`;
}
