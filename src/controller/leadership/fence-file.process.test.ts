import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { fileFence, formerHolder, processFence, revokeFence, watchFence, writeFence } from './fence-file.ts';

test('a fence permits only its own term, until either clock passes its limit', () =>
  withTempHome((dir) => {
    const path = join(dir, 'run', 'fence.json');
    const clock = new FakeClock();
    const fence = fileFence(path, 3, clock);
    const refused = 'This controller does not lead any more: ';
    expect(() => fence.check()).toThrow(`${refused}its lease was released, or cannot be read.`);
    writeFence(path, 3, 'a', clock.monotonic() + 6_000, clock);
    fence.check();
    expect(formerHolder(path)).toBe('a');
    expect(() => fileFence(path, 2, clock).check()).toThrow(`${refused}its term 2 is over, now is term 3.`);
    // As after a suspension of the machine: the monotonic clock stood still.
    clock.jumpWallTime(60_000);
    expect(() => fence.check()).toThrow(`${refused}its lease was not renewed in time.`);
    clock.jumpWallTime(-60_000);
    fence.check();
    writeFileSync(path, '{"term":3');
    expect(() => fence.check()).toThrow('cannot be read');
    writeFence(path, 3, 'a', clock.monotonic(), clock);
    expect(() => fence.check()).toThrow('not renewed in time');
    revokeFence(path);
    expect(formerHolder(path)).toBeUndefined();
    processFence(path, undefined, clock).check();
  }));

test('a watcher of a fence is notified once, soon after the loss', () =>
  withTempHome(async (dir) => {
    const path = join(dir, 'fence.json');
    const clock = new FakeClock();
    writeFence(path, 1, 'a', clock.monotonic() + 1_000, clock);
    let losses = 0;
    watchFence(fileFence(path, 1, clock), clock, () => (losses += 1));
    await clock.advance(900);
    expect(losses).toBe(0);
    await clock.advance(300);
    expect(losses).toBe(1);
    await clock.advance(2_000);
    expect(losses).toBe(1);
  }));
