import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { balancerConfig } from '../../src/controller/supervise/balancer-config.ts';
import { systemClock as clock } from '../../src/shared/clock.ts';
import { homePaths, servicePaths } from '../../src/shared/paths.ts';
import { compareAndSwap } from '../../src/store/compare-and-swap.ts';
import { openStore } from '../../src/store/open-store.ts';
import { aService, aServiceSpec, aTask, aVersion } from '../../test/support/builders.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { freePorts, startProgram, type Program } from '../balancer/processes.ts';
import { cpuTicks } from '../balancer/process-stats.ts';

// The cost of control by number of replicas; README.md explains the figures.
// `node bench/control-plane/scale.ts [replicas] [idle seconds] [cpu profiles' folder]`
const replicas = Number(process.argv[2] ?? 50);
const idleSeconds = Number(process.argv[3] ?? 60);
const profiles = process.argv[4];

const key = '0a1b2c3d';
const limitSeconds = 240;
/** From the last READY until the idle time begins, ms: the last writes end meanwhile. */
const settleMs = 5_000;
const ticksPerSecond = 100;

/** Unshared memory and its share of the shared one, MB. */
function pssMb(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1_024;
}

const cpu = (program: Program): number => {
  const { user, kernel } = cpuTicks(program.pid);
  return (user + kernel) / ticksPerSecond;
};
const seconds = (since: number): number => (performance.now() - since) / 1_000;

const run = (file: string, ...args: readonly string[]): Program =>
  startProgram(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args]);

await withTempHome(async (home) => {
  const paths = homePaths(home, process.getuid?.() ?? 0);
  const files = servicePaths(paths, key);
  for (const dir of [paths.runtimeDir, files.dir, files.replicasDir]) mkdirSync(dir, { recursive: true });
  const [port = 0, replicaPort = 0] = await freePorts(2);
  const store = await openStore({ path: paths.database, clock });
  const policy = { ...aServiceSpec().replicaPolicy, minReplicas: replicas, maxReplicas: replicas };
  const spec = aServiceSpec({ replicaPolicy: policy, replicaPort });
  const service = aService({ key, port, revision: 0 });
  const event = { at: clock.now(), subject: 'chat', subjectKey: key, replicaId: null, from: null, to: null, cause: 'up', message: '' };
  await store.services.add(service, aVersion({ task: aTask({ service: spec }) }), event, 1);
  const configFile = `${files.dir}/balancer.json`;
  writeFileSync(configFile, JSON.stringify(balancerConfig(service, spec, files, 1)));

  const programs = run('scale-replicas.ts', String(replicas), String(replicaPort));
  await waitFor('the replicas', () => programs.output() !== '', { describe: programs.output });
  const balancer = run('../../src/balancer/main.ts', configFile);
  await waitFor('the balancer', () => balancer.output().includes('Listening'), { describe: balancer.output });
  const profiling = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const began = performance.now();
  const entry = fileURLToPath(new URL('scale-reconciler.ts', import.meta.url));
  const reconciler = startProgram(process.execPath, [...profiling, entry, home, key]);
  const ready = async (): Promise<number> => (await store.replicas.list('chat')).filter(({ state }) => state === 'READY').length;

  let count = 0;
  while (count < replicas && seconds(began) < limitSeconds && reconciler.child.exitCode === null) {
    await clock.sleep(250);
    count = await ready();
  }
  const readySeconds = count === replicas ? seconds(began).toFixed(1) : `${count} ready in ${limitSeconds}`;
  const upCpu = [reconciler, balancer].map(cpu);
  await clock.sleep(settleMs);

  const idleFrom = [reconciler, balancer].map(cpu);
  const idleSince = performance.now();
  await clock.sleep(idleSeconds * 1_000);
  const cores = [reconciler, balancer].map((program, index) => (cpu(program) - (idleFrom[index] ?? 0)) / seconds(idleSince));
  const memory = [reconciler, balancer].map(({ pid }) => pssMb(pid));

  const downFrom = cpu(reconciler);
  const downSince = performance.now();
  await compareAndSwap(
    () => store.services.get('chat'),
    (seen) => store.services.update(seen, { desired: 'down' }),
  );
  reconciler.child.kill('SIGUSR2');
  let downCpu = downFrom;
  const measuring = clock.every(100, () => {
    if (reconciler.child.exitCode === null) downCpu = cpu(reconciler);
  });
  await reconciler.exited;
  measuring();
  const cells = [
    replicas,
    readySeconds,
    ...upCpu.map((one) => one.toFixed(1)),
    ...cores.map((one) => one.toFixed(3)),
    ...memory.map((one) => one.toFixed(0)),
    seconds(downSince).toFixed(1),
    (downCpu - downFrom).toFixed(1),
    loadavg()[0]?.toFixed(0),
  ];
  process.stdout.write(`${reconciler.output()}| ${cells.join(' | ')} |\n`);
  await Promise.all([balancer.stop(), programs.stop()]);
  await store.close();
});
