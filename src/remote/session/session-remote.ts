import type { Clock } from '../../shared/clock.ts';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import type { CopyToOptions, ExecOptions, ExecResult, Remote, RemoteCallOptions } from '../remote.ts';
import { runCaptured } from './captured.ts';
import { copyToMachine } from './copy.ts';
import { followRemoteFile } from './follow.ts';
import { readRemoteFile, writeRemoteFile } from './remote-file.ts';
import type { SessionMachine } from './session-machine.ts';
import { watchRemoteFolder } from './watch.ts';

/** A machine that is worked on in sessions: commands, files and watches, which are the same whatever carries them. How its ports are reached is not. */
export abstract class SessionRemote implements Remote {
  readonly baseDir: string;
  readonly enter: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly #clock: Clock;

  constructor({ baseDir, enter, environment, clock }: Pick<Remote, 'baseDir' | 'enter' | 'environment'> & { readonly clock: Clock }) {
    this.baseDir = baseDir;
    this.enter = enter;
    this.environment = environment;
    this.#clock = clock;
  }

  abstract address(port: number, options?: RemoteCallOptions): Promise<ReplicaAddress>;
  abstract forwardSocket(remotePath: string, options?: RemoteCallOptions): Promise<string>;

  /** The machine to work on; asked for at each call, and anew when a connection broke. */
  protected abstract work(): Promise<SessionMachine>;

  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    const { env, cwd, input = '', timeoutMs, signal, detached } = options;
    const { exitCode, stdout, stderr } = await runCaptured(await this.work(), {
      argv,
      env: { ...this.environment, ...env },
      cwd,
      input: detached === true ? 'detached' : Buffer.from(input, 'utf8'),
      timeoutMs,
      signal,
    });
    return { exitCode, stdout, stderr };
  }

  async copyTo(localDir: string, remoteDir: string, options: CopyToOptions = {}): Promise<void> {
    await copyToMachine(await this.work(), localDir, remoteDir, options);
  }

  async writeFile(remotePath: string, content: string, mode = 0o600): Promise<void> {
    await writeRemoteFile(await this.work(), remotePath, content, mode);
  }

  async readFile(remotePath: string): Promise<string | undefined> {
    return readRemoteFile(await this.work(), remotePath);
  }

  watch(remoteDir: string, onChange: () => void, signal: AbortSignal): void {
    void watchRemoteFolder(() => this.work(), remoteDir, onChange, this.#clock, signal);
  }

  follow(remotePath: string, offset: number, signal: AbortSignal): AsyncIterable<Buffer> {
    return followRemoteFile(() => this.work(), remotePath, offset, this.#clock, signal);
  }

  localPath(): undefined {
    return undefined;
  }
}
