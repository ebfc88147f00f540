import { expect, test } from 'vitest';
import type { ReplicasCommand } from '../../domain/balancer-link.ts';
import { Rotation } from './rotation.ts';

const address = { kind: 'tcp', host: '127.0.0.1', port: 1 } as const;

function aRotation() {
  const sent: ReplicasCommand[] = [];
  const rotation = new Rotation({ send: (command) => sent.push(command), applied: async (revision) => revision <= sent.length }, 'epoch');
  const states = () => sent.at(-1)?.replicas.map(({ id, state }) => `${id} ${state}`);
  return { rotation, sent, states };
}

test('each change is pushed as a whole set with a higher revision', () => {
  const { rotation, sent, states } = aRotation();
  rotation.serve(1, address);
  rotation.serve(2, address);
  expect(states()).toEqual(['1 serving', '2 serving']);
  rotation.drain(1, address);
  expect(states()).toEqual(['1 draining', '2 serving']);
  rotation.remove(1);
  expect(states()).toEqual(['2 serving']);
  expect(sent.map(({ revision, epoch }) => [revision, epoch])).toEqual([1, 2, 3, 4].map((revision) => [revision, 'epoch']));
});

test('what changes nothing is not sent, unless it is announced', () => {
  const { rotation, sent } = aRotation();
  rotation.serve(1, address);
  rotation.serve(1, { ...address });
  rotation.remove(9);
  expect(sent).toHaveLength(1);
  rotation.announce();
  expect(sent).toHaveLength(2);
});

test('a replica at another address, or back from draining, is sent anew', () => {
  const { rotation, states, sent } = aRotation();
  rotation.serve(1, address);
  rotation.serve(1, { ...address, port: 2 });
  rotation.drain(1, address);
  rotation.serve(1, address);
  expect([sent.length, states()]).toEqual([4, ['1 serving']]);
});
