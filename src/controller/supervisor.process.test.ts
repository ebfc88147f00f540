import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { systemClock, type CancelTimer, type Clock } from '../shared/clock.ts';
import { isAlive, type ProcessIdentity } from '../shared/process-identity.ts';
import { Supervisor, type ProcessEnd, type Supervised } from './supervisor.ts';

const program = join(import.meta.dirname, '../../test/support/hello-program.ts');

/** What happened to a supervised program, in order. */
interface Story {
  readonly ups: ProcessIdentity[];
  readonly ends: ProcessEnd[];
}

interface Followed {
  readonly supervisor: Supervisor;
  readonly story: Story;
}

/** Which program is supervised, and how; what is started is of the version `starts`. */
interface Wish {
  readonly starts: string;
  readonly wants: string;
  readonly config?: string;
  readonly renewal?: Supervised['renewal'];
  readonly clock?: Clock;
  /** Called when one has ended, before anything follows from it. */
  readonly onEnd?: () => void;
}

interface World {
  /** Begins to supervise the program. */
  readonly begin: (wish: Wish) => Followed;
  /** The same, and waits until it is there. */
  readonly supervise: (wish: Wish) => Promise<Followed>;
}

/** Everything that was started is ended, whatever becomes of the test. */
async function withSupervisors(use: (world: World) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const all: Followed[] = [];
    const printed = (): string => readFileSync(join(home, 'program.log'), 'utf8');
    const begin = ({ starts, wants, config, renewal = 'restart', clock = systemClock, onEnd = () => undefined }: Wish): Followed => {
      const socketPath = join(home, 'p.sock');
      const story: Story = { ups: [], ends: [] };
      const supervisor = new Supervisor(
        {
          name: 'program',
          argv: [program, socketPath, starts, ...(config === undefined ? [] : [config])],
          socketPath,
          logFile: join(home, 'program.log'),
          known: null,
          wanted: { version: wants, config: 'new' },
          renewal,
        },
        {
          clock,
          log: pino({ level: 'silent' }),
          isWanted: async () => true,
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
        async supervise(wish) {
          const followed = begin(wish);
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

/** Time that goes as fast as the test says, for limits of many seconds that nobody is to meet who only starts slowly. */
class PacedClock implements Clock {
  #pace = 1;
  #before = 0;
  #since = systemClock.monotonic();

  /** From now on everything goes so many times faster than it does. */
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

  /** Each period is as long as the pace at its beginning says. */
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

test('a process that is killed is started again at once, and told of as dead', async () => {
  await withSupervisors(async ({ supervise }) => {
    const { story } = await supervise({ starts: 'new', wants: 'new' });
    const [first] = story.ups;
    process.kill(first?.pid ?? 0, 'SIGKILL');
    await waitFor('another', () => story.ups.length === 2);
    expect([story.ends, story.ups[1]?.pid === first?.pid]).toEqual([['died'], false]);
  });
});

test('a process that a predecessor left is taken over as it is', async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'new', wants: 'new' });
    await before.supervisor.release();
    const { story, supervisor } = await supervise({ starts: 'new', wants: 'new' });
    expect([story.ups[0], story.ends]).toEqual([before.story.ups[0], []]);
    await supervisor.end(0);
    expect(story.ups.filter(isAlive)).toEqual([]);
  });
});

test('one that is still being looked for when its supervision ends is ended as well', async () => {
  await withSupervisors(async ({ supervise, begin }) => {
    const before = await supervise({ starts: 'new', wants: 'new' });
    await before.supervisor.release();
    const { story, supervisor } = begin({ starts: 'never', wants: 'new' });
    await supervisor.end(10_000);
    expect([story.ups, before.story.ups.filter(isAlive)]).toEqual([[], []]);
  });
});

test('an old one that can be restarted is, and nobody is told of a death', async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'old', wants: 'old' });
    await before.supervisor.release();
    const { story } = await supervise({ starts: 'new', wants: 'new' });
    await waitFor('the new one', () => story.ups.length === 2);
    expect([story.ends, before.story.ups.filter(isAlive)]).toEqual([[], []]);
  });
});

test('an old one that hands over goes on, its successor is followed, and nobody is told of a death', async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'old', wants: 'old', renewal: 'hand-over' });
    await before.supervisor.release();
    const { story, supervisor } = await supervise({ starts: 'never', wants: 'new', renewal: 'hand-over' });
    await waitFor('the successor', () => story.ups.length === 2 && supervisor.identity !== undefined);
    const [old, successor] = story.ups;
    expect([story.ends, old, supervisor.identity]).toEqual([[], before.story.ups[0], successor]);
    expect(story.ups.every(isAlive)).toBe(true);
    await supervisor.end(0);
    expect(story.ups.filter(isAlive)).toEqual([]);
  });
});

test('one with another configuration is renewed like one of another version', async () => {
  await withSupervisors(async ({ supervise }) => {
    const before = await supervise({ starts: 'new', wants: 'new', config: 'old', renewal: 'hand-over' });
    expect(before.story.ups).toHaveLength(1);
    await before.supervisor.release();
    const { story } = await supervise({ starts: 'never', wants: 'new', renewal: 'hand-over' });
    await waitFor('the successor', () => story.ups.length === 2);
    expect(story.ends).toEqual([]);
  });
});

test('what was started here is never taken for old, whatever it says: it could not be helped by another start', async () => {
  await withSupervisors(async ({ supervise }) => {
    const { story } = await supervise({ starts: 'odd', wants: 'new' });
    await systemClock.sleep(500);
    expect([story.ups.length, story.ends]).toEqual([1, []]);
  });
});

test('a process that is stopped is found to hang, killed and replaced', async () => {
  await withSupervisors(async ({ supervise }) => {
    const clock = new PacedClock();
    // What is started next has all the time that it needs.
    const { story } = await supervise({ starts: 'new', wants: 'new', clock, onEnd: () => clock.go(1) });
    const [first] = story.ups;
    process.kill(first?.pid ?? 0, 'SIGSTOP');
    clock.go(20);
    await waitFor('its end', () => story.ends.length > 0);
    await waitFor('another', () => story.ups.some(({ pid }) => pid !== first?.pid));
    expect(story.ends).toEqual(['hung']);
    expect(first === undefined || isAlive(first)).toBe(false);
  });
});
