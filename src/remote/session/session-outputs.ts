import { MarkedOutput } from './marked-output.ts';
import type { SessionEnd, SessionRequest } from './session-machine.ts';

/** After the end was told on one output, until it is on the other, ms: something left behind may be holding that one. */
export const lastOutputMs = 2_000;

/** Both outputs of a session, and what they tell of its command. */
export class SessionOutputs {
  readonly stdout: MarkedOutput;
  readonly stderr: MarkedOutput;

  constructor(token: string, { onStdout, onStderr }: Pick<SessionRequest, 'onStdout' | 'onStderr'>) {
    this.stdout = new MarkedOutput(token, onStdout);
    this.stderr = new MarkedOutput(token, onStderr);
  }

  /** On how many of them the command's end was told. */
  get ends(): number {
    return [this.stdout, this.stderr].filter(({ exitCode }) => exitCode !== undefined).length;
  }

  /** How the session ended: as the command did, if that was told at all, else as whoever carried it says. */
  end(how: SessionEnd['how'], said: string): SessionEnd {
    const exitCode = this.stdout.exitCode ?? this.stderr.exitCode;
    const isStarted = this.stdout.isStarted || this.stderr.isStarted;
    return { exitCode, how: exitCode === undefined ? how : 'ended', isStarted, said: this.stderr.foreign + said };
  }
}
