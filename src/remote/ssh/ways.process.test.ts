import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { homePaths } from '../../shared/paths.ts';
import { connectionFiles, wayFiles, type WayFiles } from './connection-files.ts';
import type { SshTarget } from './ssh-target.ts';
import { SshWays, type WayMaster } from './ways.ts';

const target: SshTarget = { name: 'h', host: 'h', port: 22, user: 'me', userConfig: false, hostKeys: 'pin-first' };

/** What becomes of one request for a way: it is made, refused, or the connection ends or hangs under it. */
type Fate = 'made' | 'refused' | 'ends' | 'hangs';

/** A connection whose requests for ways have these fates, one after the other; the last one for all that follow. */
class ScriptedMaster implements WayMaster {
  connections = 0;
  asked = 0;
  cancelled = 0;
  /** Requests wait for this. */
  held = Promise.resolve();
  readonly #fates: readonly Fate[];
  readonly #socket: string;
  #state: 'none' | 'well' | 'hung' = 'none';

  constructor(fates: readonly Fate[], socket: string) {
    this.#fates = fates;
    this.#socket = socket;
  }

  async ensure(): Promise<void> {
    if (this.#state !== 'none') return;
    this.#state = 'well';
    this.connections += 1;
  }

  incarnation(): string | undefined {
    return this.#state === 'none' ? undefined : `${this.connections}`;
  }

  async answers(): Promise<boolean> {
    if (this.#state === 'hung') this.#state = 'none';
    return this.#state === 'well';
  }

  async endIfHung(): Promise<void> {
    await this.answers();
  }

  async ask(options: readonly string[]): Promise<{ readonly exitCode: number | undefined; readonly said: string }> {
    if (options.includes('cancel')) this.cancelled += 1;
    if (!options.includes('forward')) return { exitCode: 0, said: '' };
    const fate = this.#fates[Math.min(this.asked, this.#fates.length - 1)];
    this.asked += 1;
    await this.held;
    if (fate === 'made') writeFileSync(this.#socket, '');
    if (fate === 'ends') this.#state = 'none';
    if (fate === 'hangs') this.#state = 'hung';
    const exitCode = { made: 0, refused: 255, ends: 255, hangs: undefined }[fate ?? 'made'];
    return { exitCode, said: exitCode === 0 ? '' : 'muxclient: master forward request failed' };
  }
}

/** A way to a port that is being opened over such a connection. */
interface Opening {
  readonly ways: SshWays;
  readonly files: WayFiles;
  readonly clock: FakeClock;
}

/** Opens a way to a port over such a connection. */
async function openWay(
  fates: readonly Fate[],
  use: (master: ScriptedMaster, opened: Promise<string>, socket: string, opening: Opening) => Promise<void>,
): Promise<void> {
  await withTempHome(async (dir) => {
    const paths = homePaths(join(dir, 'svc'), 1000);
    const files = wayFiles({ ...paths, runtimeDir: dir, sshDir: dir }, ['h', '/base']);
    const master = new ScriptedMaster(fates, files.socket(80));
    const machine = { target, files: connectionFiles({ ...paths, runtimeDir: dir }, target), master: () => master };
    const clock = new FakeClock();
    const ways = new SshWays(files, () => Promise.resolve(machine), clock);
    await use(master, ways.open(80), files.socket(80), { ways, files, clock });
    await ways.close();
  });
}

test.for([['ends'], ['hangs'], ['ends', 'ends']] as const)(
  'a connection under which a way is added and that %s is made anew',
  async (fates) => {
    await openWay([...fates, 'made'], async (master, opened, socket) => {
      expect(await opened).toBe(socket);
      expect(master.connections).toBe(fates.length + 1);
    });
  },
);

test('a way that a good connection refuses is told at once', async () => {
  await openWay(['refused'], async (master, opened) => {
    await expect(opened).rejects.toMatchObject({ code: 'SVC_SSH' });
    expect(master).toMatchObject({ asked: 1, connections: 1 });
  });
});

test('connections that end again and again are given up', async () => {
  await openWay(['ends'], async (master, opened) => {
    await expect(opened).rejects.toMatchObject({ code: 'SVC_SSH' });
    expect(master.connections).toBe(3);
  });
});

test('ways that are closed while they are added to a new connection stay closed', async () => {
  await openWay(['made'], async (master, opened, socket, { ways, files, clock }) => {
    await opened;
    // Somebody removed it, so that the next look adds it once more.
    rmSync(socket);
    const { promise, resolve: release } = Promise.withResolvers<void>();
    master.held = promise;
    await clock.advance(1_000);
    await waitFor('the way to be added', () => master.asked === 2);
    await ways.close();
    release();
    // Before each time it was added, by who closed it, and as it had been closed.
    const isTakenBack = (): boolean => master.cancelled === 4 && !existsSync(socket);
    await waitFor('the look to be over', () => isTakenBack() || existsSync(files.record));
    expect({ record: existsSync(files.record), socket: existsSync(socket) }).toEqual({ record: false, socket: false });
  });
});
