import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock, type CancelTimer, type Clock } from '../../shared/clock.ts';
import { isAlive, type ProcessIdentity } from '../../shared/system/process-identity.ts';
import { Supervisor, type ProcessEnd, type Supervised } from './supervisor.ts';

const program = join(import.meta.dirname, '../../../test/support/hello-program.ts');

/** Events of a supervised program, in order. */
interface Story {
  readonly ups: ProcessIdentity[];
  readonly ends: ProcessEnd[];
}

interface Followed {
  readonly supervisor: Supervisor;
  readonly story: Story;
}

/** Which program to supervise, and how. New processes run the version `starts`. */
interface Scenario {
  readonly starts: string;
  readonly desiredVersion: string;
  readonly config?: string;
  readonly renewal?: Supervised['renewal'];
  readonly clock?: Clock;
  /** Called when a process has ended, before the supervisor reacts. */
  readonly onEnd?: () => void;
}

interface World {
  /** Starts to supervise the program. */
  readonly begin: (scenario: Scenario) => Followed;
  /** The same, and waits until the process is up. */
  readonly supervise: (scenario: Scenario) => Promise<Followed>;
}

/** Ends everything that was started, even when the test fails. */
async function withSupervisors(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const all: Followed[] = [];
    const printed = (): string => readFileSync(join(home, 'program.log'), 'utf8');
    const begin = ({
      starts,
      desiredVersion,
      config,
      renewal = 'restart',
      clock = systemClock,
      onEnd = () => undefined,
    }: Scenario): Followed => {
      const socketPath = join(home, 'p.sock');
      const story: Story = { ups: [], ends: [] };
      const supervisor = new Supervisor(
        {
          name: 'program',
          argv: [program, socketPath, starts, ...(config === undefined ? [] : [config])],
          socketPath,
          logFile: join(home, 'program.log'),
          known: null,
          desired: { version: desiredVersion, config: 'new' },
          renewal,
        },
        {
          clock,
          log: pino({ level: 'silent' }),
          shouldRun: async () => true,
          onUp: (identity) => story.ups.push(identity),
          onDown(_failing, how) {
            story.ends.push(how);
            onEnd();
          },
        },
      );
      const followed = { supervisor, story };
      all.push(followed);
      return followed;
    };
    try {
      await use({
        begin,
        async supervise(scenario) {
          const followed = begin(scenario);
          await waitFor('the program', () => followed.story.ups.length > 0, { describe: printed });
          return followed;
        },
      });
    } finally {
      for (const { supervisor } of all) await supervisor.end(0);
      for (const { story } of all) for (const identity of story.ups) if (isAlive(identity)) process.kill(identity.pid, 'SIGKILL');
    }
  });
}

/** A clock whose pace the test sets. At normal pace a slowly starting process does not reach limits of many seconds. */
class PacedClock implements Clock {
  #pace = 1;
  #before = 0;
  #since = systemClock.monotonic();

  /** From now on time runs this many times faster. */
  go(pace: number): void {
    this.#before = this.monotonic();
    this.#since = systemClock.monotonic();
    this.#pace = pace;
  }

  now(): number {
    return systemClock.now();
  }

  monotonic(): number {
    return this.#before + (systemClock.monotonic() - this.#since) * this.#pace;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms / this.#pace, signal);
  }

  after(ms: number, fire: () => void): CancelTimer {
    return systemClock.after(ms / this.#pace, fire);
  }

  /** The pace at its start sets the length of each period. */
  every(ms: number, fire: () => void): CancelTimer {
    let cancel: CancelTimer | undefined;
    const wait = (): void => {
      cancel = this.after(ms, () => {
        wait();
        fire();
      });
    };
    wait();
    return () => cancel?.();
  }
}

test('a killed process is restarted at once and reported as dead', async () => {
  await withSupervisors(async ({ supervise }) => {
    const { story, supervisor } = await supervise({ starts: 'new', desiredVersion: 'new' });
    const [first] = story.ups;
    expect(supervisor.recentCrashes).toBeUndefined();
    process.kill(first?.pid ?? 0, 'SIGKILL');
    await waitFor('another', () => story.ups.length === 2);
    expect([story.ends, story.ups[1]?.pid === first?.pid]).toEqual([['died'], false]);
    expect(supervisor.recentCrashes).toMatchObject({ count: 1 });
  });
});

test("a predecessor's process is adopted unchanged", async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'new', desiredVersion: 'new' });
    await before.supervisor.release();
    const { story, supervisor } = await supervise({ starts: 'new', desiredVersion: 'new' });
    expect([story.ups[0], story.ends]).toEqual([before.story.ups[0], []]);
    await supervisor.end(0);
    expect(story.ups.filter(isAlive)).toEqual([]);
  });
});

test('a process not found yet when supervision ends is ended as well', async () => {
  await withSupervisors(async ({ supervise, begin }) => {
    const before = await supervise({ starts: 'new', desiredVersion: 'new' });
    await before.supervisor.release();
    const { story, supervisor } = begin({ starts: 'never', desiredVersion: 'new' });
    await supervisor.end(10_000);
    expect([story.ups, before.story.ups.filter(isAlive)]).toEqual([[], []]);
  });
});

test('an old process that can be restarted is, without a reported death', async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'old', desiredVersion: 'old' });
    await before.supervisor.release();
    const { story } = await supervise({ starts: 'new', desiredVersion: 'new' });
    await waitFor('the new one', () => story.ups.length === 2);
    expect([story.ends, before.story.ups.filter(isAlive)]).toEqual([[], []]);
  });
});

test('an old process hands over to its successor without a reported death', async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'old', desiredVersion: 'old', renewal: 'hand-over' });
    await before.supervisor.release();
    const { story, supervisor } = await supervise({ starts: 'never', desiredVersion: 'new', renewal: 'hand-over' });
    await waitFor('the successor', () => story.ups.length === 2 && supervisor.identity !== undefined);
    const [old, successor] = story.ups;
    expect([story.ends, old, supervisor.identity]).toEqual([[], before.story.ups[0], successor]);
    expect(story.ups.every(isAlive)).toBe(true);
    await supervisor.end(0);
    expect(story.ups.filter(isAlive)).toEqual([]);
  });
});

test('a process with another configuration is renewed like one of another version', async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'new', desiredVersion: 'new', config: 'old', renewal: 'hand-over' });
    expect(before.story.ups).toHaveLength(1);
    await before.supervisor.release();
    const { story, supervisor } = await supervise({ starts: 'never', desiredVersion: 'new', renewal: 'hand-over' });
    await waitFor('the successor', () => story.ups.length === 2 && !supervisor.isRenewing);
    expect(story.ends).toEqual([]);
  });
});

test('a process is renewed when another configuration is desired, once for each change', async () => {
  await withSupervisors(async ({ supervise }) => {
    const { story, supervisor } = await supervise({ starts: 'first', desiredVersion: 'new', renewal: 'hand-over' });
    supervisor.renew({ version: 'new', config: 'new' });
    // During the hand-over: the successor was started for the change before.
    supervisor.renew({ version: 'new', config: 'newer' });
    expect(supervisor.isRenewing).toBe(true);
    await waitFor('the successor of the successor', () => story.ups.length >= 3);
    expect(story.ends).toEqual([]);
  });
});

test('a process started by this supervisor never counts as old, whatever its version', async () => {
  await withSupervisors(async ({ supervise }) => {
    const { story } = await supervise({ starts: 'odd', desiredVersion: 'new' });
    await systemClock.sleep(500);
    expect([story.ups.length, story.ends]).toEqual([1, []]);
  });
});

test('a stopped process counts as hung, is killed and replaced', async () => {
  await withSupervisors(async ({ supervise }) => {
    const clock = new PacedClock();
    // The next process gets all the time that it needs.
    const { story } = await supervise({ starts: 'new', desiredVersion: 'new', clock, onEnd: () => clock.go(1) });
    const [first] = story.ups;
    process.kill(first?.pid ?? 0, 'SIGSTOP');
    clock.go(20);
    await waitFor('its end', () => story.ends.length > 0);
    await waitFor('another', () => story.ups.some(({ pid }) => pid !== first?.pid));
    expect(story.ends).toEqual(['hung']);
    expect(first === undefined || isAlive(first)).toBe(false);
  });
});
