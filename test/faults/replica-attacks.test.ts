import { statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { findLimits } from '../../src/providers/local/isolation.ts';
import { isolationKinds, type IsolationKind } from '../../src/remote/isolation/kinds.ts';
import type { Remote } from '../../src/remote/remote.ts';
import { jobLogPath, jobStatus, startJob } from '../../src/provision/job.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { dialReplica } from '../../src/shared/system/dial.ts';
import { withLocalProvider, type LocalProviderFixture } from '../support/local-provider.ts';
import { needs } from '../support/needs.ts';
import { processesOf } from '../support/leaks.ts';
import { waitFor } from '../support/wait-for.ts';

// A replica attacks its computer. Confinement (files, sockets, signals) has its own suite beside src/providers/local.
// Each attack is bounded by itself too, because a computer without limits must survive the test.

const isRoot = process.getuid?.() === 0;
const hasGroups = (await findLimits({ clock: systemClock })).controllers.includes('memory');

/** Processes of one machine. The tunnel, the shells and the network tool of a machine need about 20. */
const maxProcesses = 200;

const kinds = isolationKinds.filter((kind) => kind !== 'none' && (kind !== 'root' || isRoot));

/** Without control groups, the kernel has no limit of processes for root. */
const holdsProcesses = (kind: IsolationKind): boolean => hasGroups || (kind !== 'root' && !isRoot);

const serve = 'exec python3 -m http.server 8080';

async function startOn(remote: Remote, run: string): Promise<void> {
  await startJob(remote, 'main', { run, env: {}, workdir: `${remote.baseDir}/workdir` });
}

/** Whether the program of the machine accepts a connection. */
async function accepts(remote: Remote): Promise<boolean> {
  try {
    (await dialReplica(await remote.address(8080), { timeoutMs: 60_000, clock: systemClock })).destroy();
    return true;
  } catch {
    return false;
  }
}

interface Attack {
  readonly attacker: Remote;
  readonly log: () => Promise<string>;
}

/** An attacker beside a victim that serves. The victim must serve after the attack, with the same processes. */
async function withVictim(kind: IsolationKind, run: string, use: (attack: Attack) => Promise<void>): Promise<void> {
  await withLocalProvider({ isolation: kind, maxProcesses }, async (fixture: LocalProviderFixture) => {
    const victim = (await fixture.machine('victim')).remote;
    await startOn(victim, serve);
    await waitFor('the victim', () => accepts(victim));
    const { remote: attacker } = await fixture.machine('attacker', { memoryGb: 1 });
    await startOn(attacker, run);
    await use({ attacker, log: async () => (await attacker.readFile(jobLogPath(attacker, 'main'))) ?? '' });
    expect(await accepts(victim)).toBe(true);
    expect((await jobStatus(victim, 'main')).phase).toBe('run');
  });
}

needs(['python3', 'bwrap'], () => {
  test.for(kinds.filter(holdsProcesses))('%s: a fork bomb ends at the limit of processes', async (kind) => {
    const bomb = 'n=0; while [ $n -lt 1000 ]; do sleep 300 & n=$((n + 1)); done; echo begun';
    await withVictim(kind, `${bomb}; wait`, async ({ attacker, log }) => {
      await waitFor('the end of the bomb', async () => /begun|retry|fork/.test(await log()));
      expect(processesOf(attacker.baseDir).length).toBeLessThanOrEqual(maxProcesses);
      expect(await log()).toMatch(/fork/);
    });
  });

  test.for(kinds.filter(() => hasGroups))('%s: a replica above its memory is killed and named', async (kind) => {
    await withVictim(kind, `exec python3 -c 'x = bytearray(2_000_000_000); print("survived")'`, async ({ attacker }) => {
      await waitFor('its end', async () => (await jobStatus(attacker, 'main')).phase === 'ended');
      expect(await jobStatus(attacker, 'main')).toMatchObject({ signal: 'SIGKILL' });
      expect(await attacker.memoryKills?.()).toMatchObject({ limitBytes: 2 ** 30 });
      expect((await attacker.memoryKills?.())?.kills).toBeGreaterThan(0);
    });
  });

  test.for(kinds)('%s: a flood of output stays within the limit of the log', async (kind) => {
    await withVictim(kind, 'yes | head -c 150000000; echo; sleep 300', async ({ attacker }) => {
      const path = jobLogPath(attacker, 'main');
      await waitFor('the flood', () => statSync(path).size > 150_000_000);
      // 64 MiB, and what arrives while the older half is freed.
      const isBounded = (): boolean => statSync(path).blocks * 512 < 70_000_000;
      await waitFor('a bounded log', isBounded);
      expect(isBounded()).toBe(true);
    });
  });

  test.for(kinds)('%s: no spelling reaches the metadata of a cloud', async (kind) => {
    const program = `
import socket, urllib.request
for host in ['169.254.169.254', '169.254.170.2', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '169.254.43518',
             '100.100.100.200', '168.63.129.16', '::ffff:169.254.169.254', 'fd00:ec2::254', 'fe80::a9fe:a9fe']:
    try:
        socket.create_connection((host, 80), 2).close()
        print('reached', host)
    except TimeoutError:
        print('sent packets to', host)
    except OSError:
        pass
    try:
        urllib.request.urlopen('http://%s/' % ('[%s]' % host if ':' in host else host), timeout=5)
        print('fetched', host)
    except OSError as error:
        if 'timed out' in str(error): print('sent packets to', host)
try:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    if open('/proc/net/dev').read().count(':') > 1: print('sent packets past the routes')
except OSError:
    pass
print('over')`;
    await withVictim(kind, `python3 - <<'END'\n${program}\nEND\nsleep 300`, async ({ log }) => {
      await waitFor('the attempts', async () => (await log()).includes('over'));
      expect((await log()).split('\n').filter((line) => /^(?:reached|fetched|sent)/.test(line))).toEqual([]);
    });
  });

  test.for(kinds)('%s: signals to every process end only the own replica', async (kind) => {
    await withVictim(kind, 'trap "" TERM; kill -TERM -1; kill -KILL -1; exit 3', async ({ attacker }) => {
      await waitFor('its end', async () => (await jobStatus(attacker, 'main')).phase === 'ended');
      expect(await jobStatus(attacker, 'main')).toMatchObject({ exitCode: 3 });
    });
  });
});
