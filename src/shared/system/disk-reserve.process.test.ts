import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fillDisk, withSmallDisk } from '../../../test/support/small-disk.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { isDiskFull, keepReserve, releaseReserve, scarceSpace, withReserve } from './disk-reserve.ts';
import { homePaths } from '../paths.ts';

const mebibyte = 1_048_576;
const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)('a full disk consumes the reserve in parts; it is recreated with new space', async () => {
  await withTempHome(async (home) => {
    await withSmallDisk(home, 'size=160m', () => {
      const paths = homePaths(home, 0);
      keepReserve(paths);
      const spaceOfReserve = (): number =>
        readdirSync(join(home, 'reserve')).reduce((sum, file) => sum + statSync(join(home, 'reserve', file)).blocks * 512, 0);
      expect(spaceOfReserve()).toBe(8 * mebibyte);
      expect(scarceSpace(paths)).toBeUndefined();
      fillDisk(join(home, 'big'));
      expect([isDiskFull(paths), scarceSpace(paths)?.bytes]).toEqual([true, 0]);
      keepReserve(paths);
      expect(releaseReserve(paths)).toBe(true);
      writeFileSync(join(home, 'record'), Buffer.alloc(mebibyte));
      expect(spaceOfReserve()).toBe(6 * mebibyte);
      rmSync(join(home, 'big'));
      keepReserve(paths);
      expect(spaceOfReserve()).toBe(8 * mebibyte);
    });
  });
});

test.skipIf(!isRoot)('a disk without inodes gets the inodes of the reserve', async () => {
  await withTempHome(async (home) => {
    await withSmallDisk(home, 'size=160m,nr_inodes=500', () => {
      const paths = homePaths(home, 0);
      keepReserve(paths);
      expect(() => {
        for (let index = 0; ; index += 1) writeFileSync(join(home, `file-${index}`), '');
      }).toThrow('ENOSPC');
      expect(scarceSpace(paths)?.inodes).toBe(0);
      expect(releaseReserve(paths)).toBe(true);
      writeFileSync(join(home, 'record'), '');
    });
  });
});

test('a write over quota is retried after each freed part of the reserve', async () => {
  await withTempHome(async (home) => {
    const paths = homePaths(home, 0);
    keepReserve(paths);
    const left: number[] = [];
    const write = (): void => {
      left.push(readdirSync(join(home, 'reserve')).length);
      throw Object.assign(new Error('EDQUOT: quota exceeded'), { code: 'EDQUOT' });
    };
    await expect(withReserve(paths, write)).rejects.toThrow('EDQUOT');
    expect(left).toEqual([16, 12, 8, 4, 0]);
  });
});

test('the reserve stays when another disk is full', async () => {
  await withTempHome(async (home) => {
    const paths = homePaths(home, 0);
    keepReserve(paths);
    const refusal = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    await expect(withReserve(paths, () => Promise.reject(refusal))).rejects.toThrow('ENOSPC');
    expect(readdirSync(join(home, 'reserve'))).toHaveLength(16);
  });
});

test('a file at the path of the reserve is replaced', async () => {
  await withTempHome((home) => {
    const paths = homePaths(home, 0);
    writeFileSync(join(home, 'reserve'), '');
    expect(releaseReserve(paths)).toBe(false);
    writeFileSync(join(home, 'reserve'), '');
    keepReserve(paths);
    expect(readdirSync(join(home, 'reserve'))).toHaveLength(16);
  });
});
