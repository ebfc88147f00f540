import { dirname } from 'node:path/posix';
import type { ExecResult, MemoryKills, Remote } from '../../remote/remote.ts';
import type { Clock } from '../../shared/clock.ts';
import { SvcError } from '../../shared/errors.ts';
import { wakeable } from '../../shared/loop.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { fakeBaseDir, fakeBootId, type FakeMachine } from './fake-machine.ts';

/** Most changes wake the reader of a file. A test may also change a file behind the machine's back. */
const followPollMs = 10_000;
const done: ExecResult = { exitCode: 0, stdout: '', stderr: '' };

/** Supports only the commands that start and stop a job. */
export class FakeRemote implements Remote {
  readonly baseDir: string;
  readonly enter: readonly string[] = [];
  readonly environment: Readonly<Record<string, string>> = {};
  readonly #machine: FakeMachine;
  readonly #clock: Clock;

  constructor(machine: FakeMachine, clock: Clock) {
    this.baseDir = fakeBaseDir(machine);
    this.#machine = machine;
    this.#clock = clock;
  }

  async exec(argv: readonly string[]): Promise<ExecResult> {
    this.#reach();
    const [command, script = '', verb, dir = '', graceMs] = argv;
    if (command === 'mkdir') return done;
    if (command !== 'sh' || !script.endsWith('/runner.sh')) return { exitCode: 127, stdout: '', stderr: `${command}: not found` };
    if (verb === 'start') this.#machine.startJob(dir);
    else if (verb === 'stop') await this.#machine.stopJob(dir, Number(graceMs));
    return done;
  }

  async copyTo(localDir: string, remoteDir: string): Promise<void> {
    this.#reach();
    this.#machine.write(`${remoteDir}/.copied-from`, localDir);
    await Promise.resolve();
  }

  async writeFile(remotePath: string, content: string): Promise<void> {
    this.#reach();
    this.#machine.write(remotePath, content);
    await Promise.resolve();
  }

  async readFile(remotePath: string): Promise<string | undefined> {
    this.#reach();
    await Promise.resolve();
    if (remotePath === '/proc/sys/kernel/random/boot_id') return `${fakeBootId}\n`;
    const pid = /^\/proc\/(\d+)\/stat$/.exec(remotePath)?.[1];
    if (pid === undefined) return this.#machine.files.get(remotePath);
    // State is field 3 and the start time field 22; on these machines it is the pid.
    return this.#machine.living.has(Number(pid)) ? `${pid} (fake) S ${'0 '.repeat(18)}${pid} 0` : undefined;
  }

  watch(remotePath: string, onChange: () => void, signal: AbortSignal): void {
    this.#machine.watch(dirname(remotePath), onChange, signal);
  }

  async *follow(remotePath: string, offset: number, signal: AbortSignal): AsyncGenerator<Buffer> {
    const changes = wakeable(this.#clock, signal);
    this.watch(remotePath, changes.wake, signal);
    let position = offset;
    while (!signal.aborted) {
      const content = Buffer.from(this.#machine.files.get(remotePath) ?? '');
      if (content.length > position) {
        const chunk = content.subarray(position);
        position = content.length;
        yield chunk;
      }
      await changes.pause(followPollMs);
    }
  }

  localPath(): undefined {
    return undefined;
  }

  address(port: number): Promise<ReplicaAddress> {
    return Promise.resolve({ kind: 'tcp', host: this.#machine.host, port });
  }

  forwardSocket(): Promise<string> {
    return Promise.reject(new SvcError('SVC_NOT_SUPPORTED', 'Machines in memory have no sockets.'));
  }

  memoryKills(): Promise<MemoryKills | undefined> {
    return Promise.resolve(this.#machine.memoryKills);
  }

  #reach(): void {
    if (!this.#machine.isRunning) throw new SvcError('SVC_MACHINE_LOST', `Machine ${this.#machine.id} cannot be reached.`);
  }
}
