import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { processesOf, killProcessesOf } from '../../test/support/leaks.ts';
import { checkout, svcOk, type RunOptions } from '../../test/support/run-svc.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { withTestSshHosts } from '../../test/testbed/hosts/test-hosts.ts';

// What services cost while no request comes; README.md explains the figures.
// `node bench/control-plane/idle.ts [services] [seconds] [local|ssh]`, as root
const services = Number(process.argv[2] ?? 1);
const seconds = Number(process.argv[3] ?? 60);
const infra = process.argv[4] === 'ssh' ? 'ssh' : 'local';

/** After the last service is ready: the work of the start ends meanwhile. */
const settleMs = 45_000;
/** After the end of services: connections end when idle. */
const downMs = 75_000;
const ticksPerSecond = 100;

/** Kinds of processes by their command lines; the first match counts. */
const kinds: readonly (readonly [string, RegExp])[] = [
  ['standby', /^sh\0[^]*balancer.main/],
  ['replica', /server\.mjs/],
  ['balancer', /balancer.main\.(?:ts|js)/],
  ['reconciler', /controller.service.main\.(?:ts|js)/],
  ['controller', /controller.main\.(?:ts|js)/],
  ['inbound tunnel', /forwarder\.mjs/],
  ['outbound network', /egress|slirp4netns|pasta/],
  ['ssh connection', /^ssh[:\0]/],
];

interface Sample {
  readonly kind: string;
  readonly pss: number;
  readonly ticks: number;
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
};

function sampleOf(pid: number): Sample {
  const command = read(`/proc/${pid}/cmdline`);
  const stat = read(`/proc/${pid}/stat`);
  const [user = '0', system = '0'] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11);
  const pss = Number(/^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
  const kind = kinds.find(([, pattern]) => pattern.test(command))?.[0] ?? 'shells and others';
  return { kind, pss, ticks: Number(user) + Number(system) };
}

const samplesOf = (home: string): ReadonlyMap<number, Sample> => new Map(processesOf(home).map(({ pid }) => [pid, sampleOf(pid)]));

/** Numbers are given in sequence, to processes and threads. Only this measurement runs in this namespace. */
const lastPid = (): number => Number(read('/proc/sys/kernel/ns_last_pid'));

function print(title: string, before: ReadonlyMap<number, Sample>, after: ReadonlyMap<number, Sample>): void {
  const rows = Map.groupBy(after, ([, { kind }]) => kind);
  for (const [kind, processes] of rows) {
    const pss = processes.reduce((sum, [, sample]) => sum + sample.pss, 0) / 1_024;
    const ticks = processes.reduce((sum, [pid, sample]) => sum + sample.ticks - (before.get(pid)?.ticks ?? 0), 0);
    const cells = [
      title,
      kind,
      processes.length,
      (pss / processes.length).toFixed(1),
      ((ticks / ticksPerSecond / seconds) * 100).toFixed(2),
    ];
    process.stdout.write(`| ${cells.join(' | ')} |\n`);
  }
}

const statusJson = z.object({ services: z.array(z.object({ status: z.string() })) });

async function measure(home: string): Promise<void> {
  mkdirSync(join(home, 'home'), { recursive: true });
  const options: RunOptions = { home };
  writeFileSync(join(home, 'config.yaml'), 'serve: {controller: {resources: {infra: local}}}\n');
  const folder = join(checkout, 'examples/hello');
  const file = join(home, 'service.yaml');
  const text = ['service: {readiness_probe: /, replicas: 1}', `resources: {infra: ${infra}, ports: 8080}`, `workdir: ${folder}`];
  writeFileSync(file, `${text.join('\n')}\nrun: exec node server.mjs\n`);
  for (let number = 1; number <= services; number += 1) await svcOk(['serve', 'up', file, '-n', `idle-${number}`, '--wait', '-y'], options);
  const isReady = async (): Promise<boolean> => {
    const { services: all } = statusJson.parse(JSON.parse(await svcOk(['serve', 'status', '--json'], options)));
    return all.length === services && all.every(({ status }) => status === 'READY');
  };
  while (!(await isReady())) await sleep(1_000);
  await sleep(settleMs);
  const title = `${services} × ${infra}`;
  const [before, pidBefore] = [samplesOf(home), lastPid()];
  await sleep(seconds * 1_000);
  const started = lastPid() - pidBefore;
  print(title, before, samplesOf(home));
  process.stdout.write(`| ${title} | started processes and threads per second | ${(started / seconds).toFixed(2)} | | |\n`);
  await svcOk(['serve', 'down', '--all', '--yes'], options);
  while (readdirSync(join(home, 'services')).length > 0) await sleep(500);
  await sleep(downMs);
  const left = [...samplesOf(home).values()].filter(({ kind }) => kind === 'ssh connection').length;
  process.stdout.write(`| ${title} | ssh connections 75 s after \`down\` | ${left} | | |\n`);
}

async function run(home: string): Promise<void> {
  try {
    await measure(home);
  } finally {
    await killProcessesOf(home);
  }
}

if (process.env['SVC_BENCH_INSIDE'] === undefined) {
  const argv = ['--pid', '--fork', '--mount-proc', process.execPath, ...process.argv.slice(1)];
  const { status } = spawnSync('unshare', argv, { stdio: 'inherit', env: { ...process.env, SVC_BENCH_INSIDE: '1' } });
  process.exitCode = status ?? 1;
} else if (infra === 'local') {
  await withTempHome(run);
} else {
  await withTestSshHosts(async (hosts) => {
    const machines = await Promise.all(
      Array.from({ length: services }, (_, index) => hosts.up(`idle-${index}`, { node: process.execPath })),
    );
    await withTempHome(async (home) => {
      const addresses = machines.map(({ ip }) => ip).join(', ');
      writeFileSync(join(home, 'ssh_pools.yaml'), `rack: {user: ubuntu, identity_file: ${hosts.key}, hosts: [${addresses}]}\n`);
      await run(home);
    });
  });
}
