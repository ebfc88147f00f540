import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backAfterMs, decidePeers, silentAfter, uninformedMs, type OwnState, type SeenPeer } from './balancer-peers.ts';

const own = (change: Partial<OwnState> = {}): OwnState => ({
  name: 'me',
  isServing: true,
  isReady: true,
  isInformed: true,
  isEnding: false,
  outForMs: 0,
  ...change,
});
const peer = (change: Partial<SeenPeer> = {}): SeenPeer => ({ name: 'other', isServing: true, failures: 0, ...change });

test('a peer that was silent three times is taken out', () => {
  expect(decidePeers(own(), [peer({ failures: silentAfter - 1 })])).toEqual([]);
  expect(decidePeers(own(), [peer({ failures: silentAfter }), peer({ name: 'well' })])).toEqual([{ name: 'other', serving: false }]);
});

test('who serves nothing itself takes nobody out', () => {
  for (const state of [own({ isServing: false }), own({ isReady: false })])
    expect(decidePeers(state, [peer({ failures: 9 })]).filter(({ serving }) => !serving)).toEqual([]);
});

test('one puts itself in when it serves: at once when nobody does, else after a while', () => {
  const out = own({ isServing: false });
  expect(decidePeers(out, [])).toEqual([{ name: 'me', serving: true }]);
  expect(decidePeers(out, [peer()])).toEqual([]);
  expect(decidePeers({ ...out, outForMs: backAfterMs }, [peer()])).toEqual([{ name: 'me', serving: true }]);
  expect(decidePeers({ ...out, isReady: false }, [])).toEqual([]);
});

test('one that does not know the replicas leaves requests to those who do, though not for ever', () => {
  const out = own({ isServing: false, isInformed: false });
  expect(decidePeers({ ...out, outForMs: uninformedMs - 1 }, [peer()])).toEqual([]);
  expect(decidePeers({ ...out, outForMs: uninformedMs }, [peer()])).toEqual([{ name: 'me', serving: true }]);
  expect(decidePeers(out, [peer({ isServing: false })])).toEqual([{ name: 'me', serving: true }]);
});

test('one that ends takes itself out, also when it is the last', () => {
  expect(decidePeers(own({ isEnding: true }), [])).toEqual([{ name: 'me', serving: false }]);
  expect(decidePeers(own({ isEnding: true, isServing: false }), [])).toEqual([]);
});

test('somebody always stays in, whoever is silent, and whoever cannot reach whom', () => {
  const names = ['a', 'b', 'c'];
  fc.assert(
    fc.property(
      fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
      fc.array(fc.nat(5), { minLength: 9, maxLength: 9 }),
      fc.array(fc.nat(2), { maxLength: 12 }),
      (serving, failures, turns) => {
        const labels = names.map((_, index) => serving[index] ?? false);
        if (!labels.includes(true)) labels[0] = true;
        for (const turn of turns) {
          const peers = names
            .map((name, index) => ({ name, isServing: labels[index] ?? false, failures: failures[turn * 3 + index] ?? 0 }))
            .filter(({ name }) => name !== names[turn]);
          const me = own({ name: names[turn] ?? '', isServing: labels[turn] ?? false });
          for (const change of decidePeers(me, peers)) labels[names.indexOf(change.name)] = change.serving;
          expect(labels).toContain(true);
        }
      },
    ),
  );
});
