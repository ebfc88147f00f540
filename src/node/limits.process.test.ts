import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { limitsConf } from '../remote/isolation/limits.ts';
import { programFile } from '../shared/program-files.ts';

interface Fixture {
  /** Stands in for /sys/fs/cgroup. */
  readonly cgroups: string;
  readonly dir: string;
  readonly limits: (...argv: readonly string[]) => { readonly code: number | null; readonly text: string };
}

/** A machine's folder `m1`, whose limits.sh works on a folder of plain files. They keep only what was last written. */
async function withLimits(conf: string, use: (fixture: Fixture) => void): Promise<void> {
  await withTempHome((home) => {
    const [cgroups, dir] = [join(home, 'cgroups'), join(home, 'm1')];
    mkdirSync(cgroups);
    mkdirSync(dir);
    const script = readFileSync(programFile('src/node/limits.sh'), 'utf8').replaceAll('/sys/fs/cgroup', cgroups);
    writeFileSync(join(dir, 'limits.sh'), script.replace('"+$svc_controller"', '"${svc_test_controllers-memory pids cpu}"'));
    writeFileSync(join(dir, 'limits.conf'), conf);
    use({
      cgroups,
      dir,
      limits: (...argv) => {
        const { status, stdout, stderr } = spawnSync('sh', [join(dir, 'limits.sh'), ...argv], { encoding: 'utf8' });
        return { code: status, text: stdout + stderr };
      },
    });
    return Promise.resolve();
  });
}

/** Only the files that the kernel has in the topmost folder. */
function makeCgroups(cgroups: string): void {
  for (const file of ['cgroup.controllers', 'cgroup.procs', 'cgroup.subtree_control']) writeFileSync(join(cgroups, file), '');
}

test('a command runs in a group with the limits, and the machine records the group', async () => {
  await withLimits(limitsConf({ cpus: 1.5, memoryGb: 1 }, 200), ({ cgroups, dir, limits }) => {
    makeCgroups(cgroups);
    expect(limits('run', 'sh', '-c', 'echo ran; exit 7')).toEqual({ code: 7, text: 'ran\n' });
    const group = join(cgroups, 'svc-m1');
    const read = (file: string): string => readFileSync(join(group, file), 'utf8').trim();
    expect(readFileSync(join(dir, 'group'), 'utf8')).toBe(`${group}\n`);
    expect(['memory.max', 'memory.oom.group', 'cpu.max', 'pids.max', 'cgroup.procs'].map(read)).toEqual([
      '1073741824',
      '1',
      '150000 100000',
      '200',
      '0',
    ]);
  });
});

test('a machine without amounts has only the default limit of processes', async () => {
  await withLimits(limitsConf({}, undefined), ({ cgroups, limits }) => {
    makeCgroups(cgroups);
    expect(limits('run', 'true')).toEqual({ code: 0, text: '' });
    const group = join(cgroups, 'svc-m1');
    const quarter = Math.floor(Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8')) / 4);
    expect(Number(readFileSync(join(group, 'pids.max'), 'utf8'))).toBe(Math.min(16_384, quarter));
    expect(['memory.max', 'cpu.max'].map((file) => existsSync(join(group, file)))).toEqual([false, false]);
  });
});

test('without cgroup v2 the command runs, and its log says that limits do not hold', async () => {
  await withLimits(limitsConf({ memoryGb: 1 }, undefined), ({ dir, limits }) => {
    const { code, text } = limits('run', 'echo', 'ran');
    expect([code, text]).toEqual([0, '[svc] the limit of memory and cpus does not hold on this computer; svc check says why\nran\n']);
    expect(existsSync(join(dir, 'group'))).toBe(false);
    expect(limits('report').text).toBe('limits=\nlimits_lack=v2\n');
  });
});

test('the report names the controllers, and the lack of a delegated one', async () => {
  await withLimits('', ({ cgroups, limits }) => {
    makeCgroups(cgroups);
    expect(limits('report').text).toBe('limits=memory pids cpu\nlimits_lack=\n');
    process.env['svc_test_controllers'] = 'memory pids';
    expect(limits('report').text).toBe('limits=memory pids\nlimits_lack=cpu\n');
    delete process.env['svc_test_controllers'];
  });
});
