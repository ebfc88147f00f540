import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { killProcessesOf } from '../../../test/support/leaks.ts';
import { startLoopbackSshHost } from '../../../test/support/loopback-ssh-hosts.ts';
import { needs } from '../../../test/support/needs.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { systemClock } from '../../shared/clock.ts';
import { homePaths } from '../../shared/paths.ts';
import { prepareHome } from '../../shared/system/prepare-home.ts';
import { tunnelCases, type TunnelWorld } from '../tunnel-conformance.ts';
import { Tunnels } from '../tunnels.ts';
import { connectionFiles } from './connection-files.ts';
import { SshForwards, type ForwardsMaster } from './forwards.ts';
import { SshMachine } from './ssh-machine.ts';
import type { SshTarget } from './ssh-target.ts';

const target: SshTarget = { name: 'h', host: 'h', port: 22, user: 'me', userConfig: false, hostKeys: 'pin-first' };

/** The outcome of one request for a forward: it is made or refused, or the connection ends or hangs during it. */
type Fate = 'made' | 'refused' | 'ends' | 'hangs';

/** A connection whose requests for forwards have these outcomes in order; the last one applies to all that follow. */
class ScriptedMaster implements ForwardsMaster {
  connections = 0;
  asked = 0;
  cancelled = 0;
  retired = 0;
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

  async retire(): Promise<void> {
    this.retired += 1;
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

/** A forward to a port that is being opened over such a connection. */
interface Opening {
  readonly tunnels: Tunnels;
  readonly hasRecord: () => boolean;
  /** Records a tunnel of another machine over the same connection. */
  readonly addOther: () => void;
  readonly clock: FakeClock;
}

/** Opens a forward to a port over such a connection. */
async function openTunnel(
  fates: readonly Fate[],
  use: (master: ScriptedMaster, opened: Promise<string>, socket: string, opening: Opening) => Promise<void>,
): Promise<void> {
  await withTempHome(async (dir) => {
    const paths = homePaths(join(dir, 'svc'), 1000);
    const clock = new FakeClock();
    const forwards = new SshForwards(paths, ['h', '/base'], () => Promise.resolve(machine), clock);
    const socket = forwards.records.socket(forwards.name, 80);
    const master = new ScriptedMaster(fates, socket);
    const machine = { target, files: connectionFiles(paths, target), master: () => master };
    const tunnels = new Tunnels(forwards);
    const addOther = (): void => forwards.records.write('0123456789', { tunnels: [], route: { addedTo: '1' } });
    await use(master, tunnels.open(80), socket, { tunnels, hasRecord: () => forwards.hasTunnels(), addOther, clock });
    await tunnels.close();
  });
}

test.for([['ends'], ['hangs'], ['ends', 'ends']] as const)('a connection that %s while a forward is added is reopened', async (fates) => {
  await openTunnel([...fates, 'made'], async (master, opened, socket) => {
    expect(await opened).toBe(socket);
    expect(master.connections).toBe(fates.length + 1);
  });
});

test('a forward that a working connection refuses fails immediately', async () => {
  await openTunnel(['refused'], async (master, opened) => {
    await expect(opened).rejects.toMatchObject({ code: 'SVC_SSH' });
    expect(master).toMatchObject({ asked: 1, connections: 1 });
  });
});

test('opening fails after three connections in a row ended', async () => {
  await openTunnel(['ends'], async (master, opened) => {
    await expect(opened).rejects.toMatchObject({ code: 'SVC_SSH' });
    expect(master.connections).toBe(3);
  });
});

test('forwards that are closed while they are added to a new connection stay closed', async () => {
  await openTunnel(['made'], async (master, opened, socket, { tunnels, hasRecord, clock }) => {
    await opened;
    // Another process removed the socket, so the next poll adds the forward again.
    rmSync(socket);
    const { promise, resolve: release } = Promise.withResolvers<void>();
    master.held = promise;
    await clock.advance(1_000);
    await waitFor('the forward to be added', () => master.asked === 2);
    await tunnels.close();
    release();
    // One cancel before each of the two adds, one by `close`, and one after the add that found the record closed.
    const isCancelled = (): boolean => master.cancelled === 4 && !existsSync(socket);
    await waitFor('the poll to end', () => isCancelled() || hasRecord());
    expect({ record: hasRecord(), socket: existsSync(socket) }).toEqual({ record: false, socket: false });
  });
});

test('the last closed forward of a host ends its connection', async () => {
  await openTunnel(['made'], async (master, opened, _socket, { tunnels }) => {
    await opened;
    await tunnels.close();
    expect(master.retired).toBe(1);
  });
  await openTunnel(['made'], async (master, opened, _socket, { tunnels, addOther }) => {
    await opened;
    addOther();
    await tunnels.close();
    expect(master.retired).toBe(0);
  });
});

/** A machine behind a real sshd on loopback. */
async function withSshHost(use: (world: TunnelWorld) => Promise<void>): Promise<void> {
  await withTempHome(async (dir) => {
    const host = await startLoopbackSshHost(join(dir, 'h'));
    const paths = homePaths(join(dir, 'svc'), process.getuid?.() ?? 0);
    prepareHome(paths);
    const { host: address, port = 22, user = '', identityFile = '' } = host.entry;
    const sshTarget: SshTarget = { name: 'ssh-host', host: address, port, user, identityFile, userConfig: false, hostKeys: 'pin-first' };
    const echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket)).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    const listening = echo.address();
    const carrier = (): SshForwards => {
      const machine = new SshMachine(sshTarget, paths, systemClock);
      return new SshForwards(paths, ['ssh-host', host.home], () => Promise.resolve(machine), systemClock);
    };
    try {
      await use({
        carrier,
        echoPort: typeof listening === 'object' ? (listening?.port ?? 0) : 0,
        deadPort: 9,
        killHolders: () => killProcessesOf(paths.home),
        stopMachine: () => host.stop(),
        machineName: /ssh-host/,
      });
    } finally {
      await new Tunnels(carrier()).close();
      await host.stop();
      echo.close();
      await killProcessesOf(dir);
    }
  });
}

needs('sshd', () => {
  test.for(tunnelCases)('over SSH: $name', ({ run }) => withSshHost((world) => expect(run(world)).resolves.toBeUndefined()));
});
