import { expect, test } from 'vitest';
import { describeLimits, groupMemoryKills, limitsConf, limitsRemedies, readLimits } from './limits.ts';

test('limits are written in the units of the kernel', () => {
  expect(limitsConf({ cpus: 0.5, memoryGb: 1.5 }, undefined)).toBe('svc_memory=1610612736\nsvc_cpu=500\nsvc_processes=\n');
  expect(limitsConf({ cpus: 0.001 }, 200)).toBe('svc_memory=\nsvc_cpu=10\nsvc_processes=200\n');
});

test.for<readonly [controllers: string, lack: string, text: string, remedy: string]>([
  ['cpu io memory pids', '', 'memory, CPUs, processes', ''],
  ['memory pids', 'cpu', 'memory, processes; none on CPUs: the cpu controller is not delegated', 'Delegate=cpu memory pids'],
  ['', 'v2', 'processes; none on memory, CPUs: this system has no cgroup v2', 'systemd.unified_cgroup_hierarchy=1'],
  ['', 'linger', 'processes; none on memory, CPUs: systemd would end the groups of ada at logout', 'sudo loginctl enable-linger ada'],
  ['', 'delegation', 'processes; none on memory, CPUs: no control group is delegated to this user', 'sudo loginctl enable-linger ada'],
])('the report "%s" with the lack "%s" is explained', ([controllers, lack, text, remedy]) => {
  const found = readLimits(controllers, lack);
  expect(describeLimits(found, 'ada', 'userns')).toBe(`${text}; none on the disk`);
  expect(limitsRemedies(found, 'ada').join()).toContain(remedy);
  expect(limitsRemedies(found, 'ada')).toHaveLength(remedy === '' ? 0 : 1);
});

test.each([
  ['ada', 'none'],
  ['root', 'root'],
  ['root', 'bwrap'],
] as const)('without groups, the processes of %s in isolation %s have no limit', (user, isolation) => {
  expect(describeLimits(readLimits('', 'v2'), user, isolation)).toBe(
    'none on memory, CPUs, processes: this system has no cgroup v2; none on the disk',
  );
});

test('OOM kills and the limit are read from the group that the machine recorded', async () => {
  const files: Readonly<Record<string, string>> = {
    '/m/group': '/g\n',
    '/g/memory.events': 'low 0\noom 1\noom_kill 2\noom_group_kill 1\n',
    '/g/memory.max': '1073741824\n',
  };
  const readFile = (path: string): Promise<string | undefined> => Promise.resolve(files[path]);
  expect(await groupMemoryKills({ readFile }, '/m')).toEqual({ kills: 2, limitBytes: 1_073_741_824 });
  expect(await groupMemoryKills({ readFile: async (path) => (path === '/g/memory.max' ? 'max\n' : readFile(path)) }, '/m')).toEqual({
    kills: 2,
  });
  expect(await groupMemoryKills({ readFile }, '/other')).toBeUndefined();
});
