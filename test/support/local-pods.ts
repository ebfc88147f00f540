import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { KubeApi, PodProcess } from '../../src/kubernetes/kube-api.ts';
import { wholeEnv } from '../../src/shared/env.ts';

const unused = (): never => {
  throw new Error('not used here');
};

/** A cluster whose pods are this machine: commands run as in Kubernetes before 1.30. */
export interface LocalPods {
  readonly api: KubeApi;
  /** Number of started commands. */
  readonly execs: () => number;
  /** Number of open connections that keep this process alive. */
  readonly holding: () => number;
  /** Number of unreferenced connections that were referenced again. */
  readonly holds: () => number;
  /** Cuts all connections. As in a real cluster the commands continue, with their input at its end. */
  readonly cut: () => void;
  /** Refusal of the next commands, with its count. */
  readonly refuse: (error: Error, times: number) => void;
}

/** Creates one. */
export function localPods(): LocalPods {
  const open = new Set<() => void>();
  const holding = new Set<object>();
  let execs = 0;
  let holds = 0;
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
      const process = runLocally(command, onEnd);
      open.add(close);
      holding.add(close);
      const holdProcess = (isHeld: boolean): void => {
        if (isHeld && !holding.has(close)) holds += 1;
        if (isHeld) holding.add(close);
        else holding.delete(close);
      };
      return { ...process, holdProcess };
    },
  };
  return {
    api,
    execs: () => execs,
    holding: () => holding.size,
    holds: () => holds,
    cut: () => [...open].forEach((close) => close()),
    refuse: (error, times) => void refusals.push(...Array.from({ length: times }, () => error)),
  };
}

function runLocally([file = '', ...args]: readonly string[], onEnd: () => void): Omit<PodProcess, 'holdProcess'> {
  const child = spawn(file, args, { env: wholeEnv(), detached: true, stdio: 'pipe' });
  child.stdin.on('error', () => undefined);
  const { promise: ended, resolve } = Promise.withResolvers<Awaited<PodProcess['ended']>>();
  const stdio = new Duplex({
    read: () => void child.stdout.resume(),
    // The end of the input has no effect: the protocol cannot express it.
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
