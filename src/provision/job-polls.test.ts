import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import type { Remote } from '../remote/remote.ts';
import { watchJob } from './job.ts';

const record = 'phase=run\nboot=b\nrunner=7 55\nprogram=8 55\nstarted=1\n';
/** `/proc/PID/stat` of a process that started at tick 55. */
const stat = `7 (sh) S ${'0 '.repeat(18)}55 0`;

const unused = (): never => {
  throw new Error('not used');
};

/** Reads of the record by a watch of a running job within a minute, on a machine that is, or is not, this one. */
async function readsInAMinute(isLocal: boolean): Promise<number> {
  let reads = 0;
  const remote: Remote = {
    baseDir: '/m',
    enter: [],
    environment: {},
    exec: unused,
    copyTo: unused,
    writeFile: unused,
    follow: unused,
    address: unused,
    forwardSocket: unused,
    watch: () => undefined,
    localPath: (path) => (isLocal ? path : undefined),
    async readFile(path) {
      if (path.startsWith('/proc/sys')) return 'b\n';
      if (path.startsWith('/proc')) return stat;
      reads += 1;
      return record;
    },
  };
  const clock = new FakeClock();
  const over = new AbortController();
  const watching = (async () => {
    for await (const { phase } of watchJob(remote, 'main', over.signal, { clock })) expect(phase).toBe('run');
  })();
  await clock.advance(60_000);
  over.abort();
  await watching;
  return reads;
}

test('a running job is polled each second on this machine, and rarely on another', async () => {
  expect(await readsInAMinute(true)).toBeGreaterThan(50);
  expect(await readsInAMinute(false)).toBeLessThan(6);
});
