import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, aTask } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aStubProvider, idOf } from '../../test/support/stub-provider.ts';
import { FakeMachine } from '../providers/fake/fake-machine.ts';
import { FakeRemote } from '../providers/fake/fake-remote.ts';
import type { ExecResult, ExecOptions } from '../remote/remote.ts';
import { bootstrap } from './bootstrap.ts';

const clock = new FakeClock();

function aMachine(): FakeMachine {
  const settings = { id: idOf('m1'), key: 'k', offer: anOffer(), spec: aMachineSpec(), clock, runsAt: 0 };
  return new FakeMachine({ ...settings, behaviourOf: () => ({}), onChange: () => undefined });
}

/** A node on which the test defines the effect of each command. */
class CommandedRemote extends FakeRemote {
  readonly #command: (signal: AbortSignal | undefined) => Promise<ExecResult>;

  constructor(command: (signal: AbortSignal | undefined) => Promise<ExecResult>) {
    super(aMachine(), clock);
    this.#command = command;
  }

  override exec(_argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return this.#command(options.signal);
  }
}

test('when one node cannot be prepared, the others stop and its reason is reported', async () => {
  let ended = 0;
  const slow = new CommandedRemote(
    (signal) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => {
          ended += 1;
          reject(new Error('cut off'));
        });
      }),
  );
  const full = new CommandedRemote(() => Promise.reject(new Error('the disk is full')));
  const nodes = [slow, full].map((remote, rank) => ({ rank, ip: `10.0.0.${rank}`, remote }));
  const provider = aStubProvider({ nodes: () => Promise.resolve(nodes) });
  const what = {
    task: aTask({ run: 'true', numNodes: 2 }),
    snapshot: { dir: '/none', name: 'v1' },
    delivery: { publish: () => Promise.resolve(undefined), fetchable: () => Promise.reject(new Error('nothing is fetched')) },
    jobName: 'replica',
    identity: { owner: 'chat', replicaId: 1, taskId: 'svc-chat-1', port: 8080, gpus: 0 },
    log: () => undefined,
    isolated: false,
    keepExtra: false,
  };
  await expect(bootstrap({ provider, id: idOf('m1') }, what, new AbortController().signal)).rejects.toThrow('the disk is full');
  expect(ended).toBe(1);
});
