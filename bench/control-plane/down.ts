import { loadavg } from 'node:os';
import { performance } from 'node:perf_hooks';
import { aMachineSpec, someResources } from '../../test/support/builders.ts';
import { withLocalProvider } from '../../test/support/local-provider.ts';
import { startJob } from '../../src/provision/job.ts';

// Removes many local machines at once, as `svc serve down` does; README.md explains the figures.
// `node bench/control-plane/down.ts [machines]`
const count = Number(process.argv[2] ?? 50);

/** Machines whose programs start at the same time. */
const startsAtOnce = 4;

await withLocalProvider({ isolation: 'auto' }, async ({ provider }) => {
  const [offer] = (await provider.offers(someResources(), {})).offers;
  if (offer === undefined) throw new Error('This computer has no offer.');
  const start = async (number: number): Promise<void> => {
    const key = `down-${number}`;
    const id = await provider.create(offer, aMachineSpec({ tags: { 'svc-key': key } }), key, {});
    const remote = provider.remote(id);
    await startJob(remote, 'main', { run: 'exec sleep 3600', env: {}, workdir: `${remote.baseDir}/workdir` });
  };
  for (let first = 0; first < count; first += startsAtOnce)
    await Promise.all(Array.from({ length: Math.min(startsAtOnce, count - first) }, (_, index) => start(first + index)));
  const machines = await provider.list({}, {});
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  await Promise.all(machines.map(({ id }) => provider.destroy(id, {})));
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const cells = [machines.length, seconds.toFixed(1), ((user + system) / 1e6).toFixed(1), loadavg()[0]?.toFixed(0)];
  process.stdout.write(`| ${cells.join(' | ')} |\n`);
});
