import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aMachineSpec } from '../../../test/support/builders.ts';
import { assertMachineId } from '../provider.ts';
import { MachineIds } from './machine-id.ts';
import { callersTags, displayName, machineTags, ownerOf, readTags, writeTags } from './tags.ts';

test('labels never replace the tags that identify a machine', () => {
  const labels = { 'svc-key': 'mine', 'svc.home': 'mine', a: 'b' };
  const tags = machineTags(aMachineSpec({ tags: { 'svc-key': 'k' }, labels }), 'k', 'h', 'ubuntu');
  expect(tags).toMatchObject({ 'svc-key': 'k', 'svc.home': 'h', a: 'b' });
  expect(callersTags(tags)).toEqual({ 'svc-key': 'k' });
});

test('the owner of a machine is its service, else its key', () => {
  expect(ownerOf({ tags: { 'svc-service-key': 's', 'svc-key': 'k' } }, 'x')).toBe('s');
  expect([ownerOf({ tags: { 'svc-key': 'k' } }, 'x'), ownerOf({ tags: {} }, 'x')]).toEqual(['k', 'x']);
  expect([displayName({ tags: { 'svc-service': 'chat', 'svc-replica': '1' } }), displayName({ tags: {} })]).toEqual(['chat-1', 'svc']);
});

test('a narrow alphabet stores any tags as labels and returns them', () => {
  const text = fc.string({ unit: 'binary', maxLength: 5 });
  fc.assert(
    fc.property(fc.dictionary(text, text), (tags) => {
      const stored = writeTags(tags, 'lower-case');
      for (const label of Object.entries(stored).flat()) expect(label).toMatch(/^[a-z0-9_-]{0,63}$/);
      expect(readTags(stored, 'lower-case')).toEqual({ ...tags });
    }),
  );
  expect(writeTags({ 'svc.home': 'Aé' }, 'lower-case')).toEqual({ svc_2ehome: '_41_c3_a9' });
  expect(writeTags({ 'svc.home': 'Aé' }, 'any')).toEqual({ 'svc.home': 'Aé' });
});

test('a label that is too long is refused and quoted', () => {
  expect(() => writeTags({ team: 'x'.repeat(64) }, 'lower-case')).toThrow(/'x{64}' is too long .* at most 63 characters/);
});

test('an id encodes location and user; other texts are rejected', () => {
  const traits = {
    mainRegion: 'us-east-1',
    usualUser: 'ubuntu',
    instanceForm: /^i-[0-9a-z]+$/,
    labels: 'any',
    once: 'cloud',
    listCovers: 'region',
  } as const;
  const ids = new MachineIds({ title: 'AWS', traits });
  const refs = [
    { region: 'us-east-1', instanceId: 'i-0abc', user: 'ubuntu' },
    { region: 'ap-southeast-2', instanceId: 'i-1', user: 'ec2-user' },
    { region: 'us-gov-west-1', instanceId: 'i-1', user: 'ubuntu' },
  ];
  expect(refs.map((ref) => ids.of(ref))).toEqual(['us-east-1/i-0abc', 'ap-southeast-2/i-1/ec2-user', 'us-gov-west-1/i-1']);
  expect(refs.map((ref) => ids.read(ids.of(ref)))).toEqual(refs);
  const others = ['0123', 'us-east-1', 'us-east-1/x-1', 'us-east-1/i-1/../x', ''];
  expect(others.map((id) => ids.read(id))).toEqual(others.map(() => undefined));
  const id = '0123';
  assertMachineId(id);
  expect(() => ids.existing(id)).toThrow("'0123' is no machine of AWS.");
});
