import { expect, test } from 'vitest';
import { aMachineSpec, anOffer, aTask } from '../../test/support/builders.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { aStubProvider, idOf } from '../../test/support/stub-provider.ts';
import { FakeMachine } from '../providers/fake/fake-machine.ts';
import { FakeRemote } from '../providers/fake/fake-remote.ts';
import type { ExecResult, ExecOptions } from '../remote/remote.ts';
import { bootstrap, taskEnvironment } from './bootstrap.ts';

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

const identity = { owner: 'chat', replicaId: 3, taskId: 'svc-x_chat_3', port: 8080, gpus: 2, node: { rank: 0, ips: ['127.0.0.1'] } };

test('every svc variable exists with its SkyPilot name', () => {
  expect(taskEnvironment(aTask(), identity)).toEqual({
    SVC_NUM_GPUS_PER_NODE: '2',
    SVC_NODE_RANK: '0',
    SVC_NODE_IPS: '127.0.0.1',
    SVC_NUM_NODES: '1',
    SVC_TASK_ID: 'svc-x_chat_3',
    SVC_SERVICE_NAME: 'chat',
    SVC_REPLICA_ID: '3',
    SVC_REPLICA_PORT: '8080',
    SKYPILOT_NUM_GPUS_PER_NODE: '2',
    SKYPILOT_NODE_RANK: '0',
    SKYPILOT_NODE_IPS: '127.0.0.1',
    SKYPILOT_NUM_NODES: '1',
    SKYPILOT_TASK_ID: 'svc-x_chat_3',
    SKYPILOT_SERVE_REPLICA_ID: '3',
    SKYPILOT_SETUP_NUM_GPUS_PER_NODE: '2',
    SKYPILOT_SETUP_NODE_RANK: '0',
    SKYPILOT_SETUP_NODE_IPS: '127.0.0.1',
  });
});

test('each of several nodes gets its rank and all addresses', () => {
  const env = taskEnvironment(aTask({ numNodes: 2 }), { ...identity, node: { rank: 1, ips: ['10.0.0.1', '10.0.0.2'] } });
  for (const name of ['SVC', 'SKYPILOT', 'SKYPILOT_SETUP']) {
    expect(env[`${name}_NODE_RANK`]).toBe('1');
    expect(env[`${name}_NODE_IPS`]).toBe('10.0.0.1\n10.0.0.2');
  }
  expect([env['SVC_NUM_NODES'], env['SKYPILOT_NUM_NODES']]).toEqual(['2', '2']);
});

test("secrets override envs, and neither overrides svc's own variables", () => {
  const env = taskEnvironment(aTask({ envs: { A: 'env', B: 'b', SVC_REPLICA_ID: '99' }, secrets: { A: 'secret' } }), identity);
  expect([env['A'], env['B'], env['SVC_REPLICA_ID']]).toEqual(['secret', 'b', '3']);
});

test('a single launch has no replica and no port', () => {
  const env = taskEnvironment(aTask(), { owner: 'box', replicaId: undefined, taskId: 't', port: undefined, gpus: 0, node: identity.node });
  expect(Object.keys(env).filter((name) => /REPLICA/.test(name))).toEqual([]);
});
