import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { failureOf } from '../../../test/support/failure-of.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { localPods } from '../../../test/support/local-pods.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { readStatus, statusError } from '../../kubernetes/kube-errors.ts';
import { PodMachine } from './pod-machine.ts';

const act = { verb: 'get', path: '/api/v1/namespaces/n/pods/p/exec', context: 'c' };

/** A pod in which no command starts; counts the attempts. */
function podWith(exec: KubeApi['exec']): { readonly run: () => Promise<unknown>; readonly asked: () => number; readonly clock: FakeClock } {
  const clock = new FakeClock();
  let asked = 0;
  const api: KubeApi = {
    ...localPods().api,
    exec: (...words) => {
      asked += 1;
      return exec(...words);
    },
  };
  const machine = new PodMachine({
    api: () => Promise.resolve(api),
    context: 'c',
    pod: { namespace: 'n', name: 'p' },
    spoolDir: '/nowhere',
    clock,
  });
  const request = { argv: ['true'], env: {}, input: Buffer.alloc(0), onStdout: () => undefined, onStderr: () => undefined };
  return { run: () => machine.session(request, { lane: 'command', isRepeatable: false }), asked: () => asked, clock };
}

/** The container runtime's message for a command that it could not start. */
const notStarted =
  (message: string): KubeApi['exec'] =>
  async () => {
    const [stdio, stderr] = [new PassThrough(), new PassThrough()];
    const ended = Promise.resolve({ exitCode: undefined, message });
    return { stdio, stderr, canCloseInput: false, ended, holdProcess: () => undefined, close: () => undefined };
  };

const started = 'error executing command in container: failed to exec in container: failed to start exec "1":';

test.each([
  [
    'runc',
    `${started} OCI runtime exec failed: exec failed: unable to start container process: exec: "/bin/sh": stat /bin/sh: no such file or directory`,
  ],
  [
    'runc, older',
    `${started} OCI runtime exec failed: exec failed: container_linux.go:380: starting container process caused: exec: "/bin/sh": executable file not found in $PATH: unknown`,
  ],
  ['crun', 'exec failed: executable file `/bin/sh` not found in $PATH: No such file or directory'],
  ['Kata', `${started} Others("... rpc status: code: INTERNAL message: \\"the file /bin/sh was not found\\"")`],
])('an image without a shell is unfit: message of %s', async (_runtime, message) => {
  expect((await failureOf(podWith(notStarted(message)).run())).code).toBe('SVC_HOST_UNFIT');
});

test.each([
  `${started} failed to retrieve OCI runtime exec internal pid: open /run/containerd/io.containerd.runtime.v1.linux/k8s.io/7a/b9-internal.pid: no such file or directory: unknown`,
  `${started} OCI runtime exec failed: exec failed: unable to start container process: error closing exec fds: open /proc/self/fd: no such file or directory: unknown`,
])('a file missing for a moment is transient, no fault of the image: %s', async (message) => {
  expect(await failureOf(podWith(notStarted(message)).run())).toMatchObject({ code: 'SVC_KUBERNETES', kind: 'transient' });
});

const answered =
  (code: number): KubeApi['exec'] =>
  () =>
    Promise.reject(statusError(act, readStatus(code, '')));

test.each([
  [404, 1],
  [400, 1],
  [403, 1],
  [429, 3],
  [500, 3],
])('after status %i a command is attempted %i times in all', async (code, times) => {
  const { run, asked, clock } = podWith(answered(code));
  const failure = failureOf(run());
  await clock.advance(10_000);
  await failure;
  expect(asked()).toBe(times);
});
