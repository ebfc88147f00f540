import { expect, test } from 'vitest';
import { mountsBelow } from './remove-tree.ts';

const line = (point: string): string => `36 35 98:0 / ${point} rw,noatime master:1 - ext3 /dev/root rw\n`;

test('mounts below a folder are found, not those beside or on it', () => {
  const mounts = ['/', '/m/one', '/m/one/data', '/m/one/data/deep', '/m/one-more', '/m/one/with\\040space'].map(line).join('');
  expect(mountsBelow('/m/one', mounts)).toEqual(['/m/one/data', '/m/one/data/deep', '/m/one/with space']);
});
