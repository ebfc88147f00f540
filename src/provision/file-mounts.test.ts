import { expect, test } from 'vitest';
import { aTask } from '../../test/support/builders.ts';
import { refuseMountsAnywhere } from './file-mounts.ts';

const none = { spot: false, stopResume: false, customImages: false, openPorts: false, multiNode: false, gpus: false };
const localProvider = { name: 'local', capabilities: none };
const cloud = { name: 'aws', capabilities: { ...none, mountsAnywhere: true } };
const taskWith = (...targets: readonly string[]) =>
  aTask({ fileMounts: targets.map((target) => ({ target, source: { kind: 'path', path: '/x' } })) });

test("a mount outside the working directory is refused with the provider's name", () => {
  expect(() => refuseMountsAnywhere(taskWith('data', '/models', '~/.cache'), [localProvider, cloud])).toThrow(
    'At local, files can be put into the working directory only, not to /models, ~/.cache.',
  );
});

test('mounts inside it, and providers with separate machines, are accepted', () => {
  expect(() => refuseMountsAnywhere(taskWith('data', './a/../b'), [localProvider])).not.toThrow();
  expect(() => refuseMountsAnywhere(taskWith('/models'), [cloud])).not.toThrow();
});
