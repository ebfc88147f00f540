import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { KubeApi, PodProcess } from '../../src/kubernetes/kube-api.ts';
import { wholeEnv } from '../../src/shared/env.ts';

const unused = (): never => {
  throw new Error('not used here');
};

/** A cluster whose pods are this very machine: commands are run here as Kubernetes before 1.30 runs them. */
export interface LocalPods {
  readonly api: KubeApi;
  /** How many commands were started. */
  readonly execs: () => number;
  /** How many of the connections that are open keep this process from ending. */
  readonly holding: () => number;
  /** Cuts all connections. As in a cluster the commands go on, with the end of their input. */
  readonly cut: () => void;
  /** The next so many commands are refused with this. */
  readonly refuse: (error: Error, times: number) => void;
}

/** Makes one. */
export function localPods(): LocalPods {
  const open = new Set<() => void>();
  const holding = new Set<object>();
  let execs = 0;
  const refusals: Error[] = [];
  const api: KubeApi = {
    context: 'local',
    namespace: 'default',
    isInside: false,
    get: unused,
    list: unused,
    apply: unused,
    create: unused,
    replace: unused,
    merge: unused,
    remove: unused,
    text: unused,
    watch: unused,
    portForward: unused,
    async exec(_pod, command) {
      execs += 1;
      const refusal = refusals.shift();
      if (refusal !== undefined) throw refusal;
      const close = (): void => process.close();
      const onEnd = (): void => {
        open.delete(close);
        holding.delete(close);
      };
      const process = runHere(command, onEnd);
      open.add(close);
      holding.add(close);
      return { ...process, holdProcess: (isHeld) => void (isHeld ? holding.add(close) : holding.delete(close)) };
    },
  };
  return {
    api,
    execs: () => execs,
    holding: () => holding.size,
    cut: () => [...open].forEach((close) => close()),
    refuse: (error, times) => void refusals.push(...Array.from({ length: times }, () => error)),
  };
}

function runHere([file = '', ...args]: readonly string[], onEnd: () => void): Omit<PodProcess, 'holdProcess'> {
  const child = spawn(file, args, { env: wholeEnv(), detached: true, stdio: 'pipe' });
  child.stdin.on('error', () => undefined);
  const { promise: ended, resolve } = Promise.withResolvers<Awaited<PodProcess['ended']>>();
  const stdio = new Duplex({
    read: () => void child.stdout.resume(),
    // Ending the input does nothing: the protocol cannot say it.
    write: (chunk: Buffer, _encoding, done) => void child.stdin.write(chunk, () => done()),
  });
  child.stdout.on('data', (chunk: Buffer) => {
    if (!stdio.push(chunk)) child.stdout.pause();
  });
  const finish = (end: Awaited<PodProcess['ended']>): void => {
    onEnd();
    stdio.push(null);
    resolve(end);
  };
  child.once('close', (code) => finish({ exitCode: code ?? 137, message: undefined }));
  const close = (): void => {
    child.stdin.destroy();
    child.stdout.destroy();
    child.stderr.destroy();
    finish({ exitCode: undefined, message: 'the connection was cut' });
  };
  return { stdio, stderr: child.stderr, canCloseInput: false, ended, close };
}
