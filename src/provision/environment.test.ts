import { expect, test } from 'vitest';
import { aTask } from '../../test/support/builders.ts';
import { taskEnvironment } from './environment.ts';

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
