import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { systemClock } from '../../shared/clock.ts';
import { findGpus } from './offers.ts';

test("the driver's own tool is queried once", async () => {
  await withTempHome(async (dir) => {
    const tool = join(dir, 'nvidia-smi');
    writeFileSync(tool, `#!/bin/sh\necho "$*" >> ${dir}/calls\necho '0, NVIDIA L4, 23034'\n`);
    chmodSync(tool, 0o755);
    process.env['PATH'] = `${dir}:${process.env['PATH']}`;
    expect(await findGpus(systemClock, undefined)).toEqual([{ index: 0, name: 'NVIDIA L4', memoryGb: 23_034 / 1_024 }]);
    writeFileSync(tool, '#!/bin/sh\nexit 1\n');
    expect((await findGpus(systemClock, undefined)).length).toBe(1);
  });
});

test('configured GPUs replace detected ones', async () => {
  expect(await findGpus(systemClock, { name: 'H100', count: 2 })).toEqual([
    { index: 0, name: 'H100', memoryGb: undefined },
    { index: 1, name: 'H100', memoryGb: undefined },
  ]);
});
