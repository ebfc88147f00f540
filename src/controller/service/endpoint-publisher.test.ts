import { expect, test } from 'vitest';
import type { BalancerReplica, ReplicasCommand } from '../../domain/balancer-link.ts';
import { EndpointPublisher } from './endpoint-publisher.ts';

const endpoint = (id: number, state: BalancerReplica['state'] = 'serving'): BalancerReplica => ({
  id,
  address: { kind: 'tcp', host: '127.0.0.1', port: id },
  place: 'local/local',
  weight: 1,
  state,
});

function aPublisher() {
  const sent: ReplicasCommand[] = [];
  const sink = { send: (command: ReplicasCommand) => sent.push(command), applied: async (revision: number) => revision <= sent.length };
  return { publisher: new EndpointPublisher(sink, 'epoch', () => ({ candidates: [], service: undefined, expected: undefined })), sent };
}

test('each changed set is sent as a whole with a higher revision', () => {
  const { publisher, sent } = aPublisher();
  publisher.publish([endpoint(1), endpoint(2)], undefined);
  publisher.publish([endpoint(1, 'draining'), endpoint(2)], undefined);
  publisher.publish([endpoint(2)], undefined);
  expect(sent.map(({ revision, epoch, replicas }) => [revision, epoch, replicas.length])).toEqual([
    [1, 'epoch', 2],
    [2, 'epoch', 2],
    [3, 'epoch', 1],
  ]);
});

test('the first set is sent even when empty; an equal set is not repeated', async () => {
  const { publisher, sent } = aPublisher();
  publisher.refresh();
  publisher.refresh();
  expect(sent.map(({ replicas }) => replicas)).toEqual([[]]);
  expect(await publisher.settled(1)).toBe(true);
});

test('a change of the expected replica is sent, and an equal one is not repeated', () => {
  const { publisher, sent } = aPublisher();
  for (const phase of ['provisioning', 'loading', 'loading'] as const) publisher.publish([], { phase, readyAt: 5_000 });
  publisher.publish([endpoint(1)], undefined);
  expect(sent.map(({ expected }) => expected?.phase)).toEqual(['provisioning', 'loading', undefined]);
});
