import { expect, test } from 'vitest';
import type { ReplicasCommand } from '../../domain/balancer-link.ts';
import { aReplica, aServiceSpec } from '../../../test/support/builders.ts';
import { Rotation, rotationMember, type RotationMember } from './rotation.ts';

const address = { kind: 'tcp', host: '127.0.0.1', port: 1 } as const;
const member = (id: number, port = 1): RotationMember => ({ id, address: { ...address, port }, place: 'local/local', weight: 1 });

function aRotation() {
  const sent: ReplicasCommand[] = [];
  const rotation = new Rotation({ send: (command) => sent.push(command), applied: async (revision) => revision <= sent.length }, 'epoch');
  const states = () => sent.at(-1)?.replicas.map(({ id, state }) => `${id} ${state}`);
  return { rotation, sent, states };
}

test('each change is pushed as a whole set with a higher revision', () => {
  const { rotation, sent, states } = aRotation();
  rotation.serve(member(1));
  rotation.serve(member(2));
  expect(states()).toEqual(['1 serving', '2 serving']);
  rotation.drain(member(1));
  expect(states()).toEqual(['1 draining', '2 serving']);
  rotation.remove(1);
  expect(states()).toEqual(['2 serving']);
  expect(sent.map(({ revision, epoch }) => [revision, epoch])).toEqual([1, 2, 3, 4].map((revision) => [revision, 'epoch']));
});

test('what it begins with is one set, also an empty one', () => {
  for (const members of [[member(1), member(2)], []]) {
    const { rotation, sent } = aRotation();
    rotation.begin(members);
    expect(sent.map(({ replicas }) => replicas.map(({ id }) => id))).toEqual([members.map(({ id }) => id)]);
  }
});

test('what changes nothing is not sent', () => {
  const { rotation, sent } = aRotation();
  rotation.serve(member(1));
  rotation.serve(member(1));
  rotation.remove(9);
  expect(sent).toHaveLength(1);
});

test('a replica at another address, or back from draining, is sent anew', () => {
  const { rotation, states, sent } = aRotation();
  rotation.serve(member(1));
  rotation.serve(member(1, 2));
  rotation.drain(member(1));
  rotation.serve(member(1));
  expect([sent.length, states()]).toEqual([4, ['1 serving']]);
});

const place = {
  provider: 'aws',
  region: 'us-east-1',
  zone: null,
  instanceType: 'g6.xlarge',
  resources: '1x',
  gpus: 1,
  accelerator: 'L4',
  spot: false,
  hourlyUsd: 0.8,
};

test('the balancer is told where a replica is, and what it takes beside others', () => {
  const { replicaPolicy } = aServiceSpec();
  const aware = aServiceSpec({ replicaPolicy: { ...replicaPolicy, targetQpsPerReplica: { 'A100-80GB': 10, l4: 2.5 } } });
  const replica = aReplica({ id: 7, place });
  expect(rotationMember(replica, address, aServiceSpec())).toEqual({ id: 7, address, place: 'aws/us-east-1', weight: 1 });
  expect(rotationMember(replica, address, aware)).toMatchObject({ weight: 2.5 });
  const zoned = aReplica({ place: { ...place, zone: 'us-east-1a', accelerator: 'A100-80GB' } });
  expect(rotationMember(zoned, address, aware)).toMatchObject({ place: 'aws/us-east-1/us-east-1a', weight: 10 });
});
