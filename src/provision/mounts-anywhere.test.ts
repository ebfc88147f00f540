import { expect, test } from 'vitest';
import { aTask } from '../../test/support/builders.ts';
import { refuseMountsAnywhere } from './mounts-anywhere.ts';

const none = { spot: false, stopResume: false, customImages: false, openPorts: false, multiNode: false, gpus: false };
const here = { name: 'local', capabilities: none };
const cloud = { name: 'aws', capabilities: { ...none, mountsAnywhere: true } };
const taskWith = (...targets: readonly string[]) =>
  aTask({ fileMounts: targets.map((target) => ({ target, source: { kind: 'path', path: '/x' } })) });

test('a target outside the working directory is refused with the place where it cannot be', () => {
  expect(() => refuseMountsAnywhere(taskWith('data', '/models', '~/.cache'), [here, cloud])).toThrow(
    'At local, files can be put into the working directory only, not to /models, ~/.cache.',
  );
});

test('targets inside, and places with machines of their own, are fine', () => {
  expect(() => refuseMountsAnywhere(taskWith('data', './a/../b'), [here])).not.toThrow();
  expect(() => refuseMountsAnywhere(taskWith('/models'), [cloud])).not.toThrow();
});
