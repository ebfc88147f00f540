import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { openLoad, outcomes } from '../support/load.ts';
import { balancersOf, daemonOf, programsOf, reconcilersOf } from '../support/processes.ts';
import { checkout } from '../support/run-svc.ts';
import { waitFor } from '../support/wait-for.ts';

const upgrades = 10;

/** A separate checkout, whose version can be raised as a newer release does. */
class Checkout {
  readonly root: string;

  constructor(home: string) {
    this.root = join(home, 'checkout');
    for (const part of ['src', 'catalog', 'package.json', 'package-lock.json']) {
      cpSync(join(checkout, part), join(this.root, part), { recursive: true, filter: (path) => !path.endsWith('.test.ts') });
    }
    symlinkSync(join(checkout, 'node_modules'), join(this.root, 'node_modules'));
  }

  become(version: string): void {
    const path = join(this.root, 'package.json');
    const data: object = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...data, version }));
  }
}

const pids = (list: readonly { readonly pid: number }[]): readonly number[] => list.map(({ pid }) => pid);

/** Returns the processes that serve now; a balancer that has handed over may still finish its requests. */
async function workersOf(svc: Svc, from: string) {
  const text = await svc.ok(['serve', 'status', '--json'], { from });
  const { services }: { readonly services: readonly { readonly balancerPid: number; readonly controllerPid: number }[] } = JSON.parse(text);
  return { daemon: pids(daemonOf(svc.home)), balancer: services[0]?.balancerPid, reconciler: services[0]?.controllerPid };
}

test(`${upgrades} upgrades under load replace every process, no replica, and fail no request`, async () => {
  await withSvc(async (svc) => {
    const copy = new Checkout(svc.home);
    const from = copy.root;
    await svc.ok(['serve', 'up', 'examples/hello/service.yaml', '-n', 'hello', '--wait'], { from });
    const { endpoint } = await svc.ready('hello', 2);
    const programs = pids(programsOf(svc.home, /server\.mjs/));
    const keptAlive = openLoad({ url: endpoint }, 60);
    const newConnections = openLoad({ url: endpoint, headers: { connection: 'close' } }, 60);
    let before = await workersOf(svc, from);
    for (let upgrade = 1; upgrade <= upgrades; upgrade += 1) {
      copy.become(`1.0.${upgrade}`);
      const last = before;
      before = await waitFor(
        `new processes after upgrade ${upgrade}`,
        async () => {
          const now = await workersOf(svc, from);
          const isNew = now.daemon[0] !== last.daemon[0] && now.balancer !== last.balancer && now.reconciler !== last.reconciler;
          return isNew && typeof now.balancer === 'number' && typeof now.reconciler === 'number' && now;
        },
        { describe: () => workersOf(svc, from) },
      );
    }
    const [kept, opened] = await Promise.all([keptAlive.stop(), newConnections.stop()]);
    console.info(`requests on kept connections ${kept.sent}, on new ones ${opened.sent}`);
    // Checked first: without its replicas a service refuses requests even with a healthy balancer. The history has the
    // reason.
    const ends = (await svc.events('hello')).filter(({ to }) => to === 'NOT_READY' || to === 'SHUTTING_DOWN' || to === 'FAILED');
    expect(ends).toEqual([]);
    expect(pids(programsOf(svc.home, /server\.mjs/))).toEqual(programs);
    expect(outcomes(kept)).toEqual({ 200: kept.sent });
    expect(outcomes(opened)).toEqual({ 200: opened.sent });
    await waitFor('the old balancers to end', () => balancersOf(svc.home).length === 1 && reconcilersOf(svc.home).length === 1);
    const died = (await svc.events('hello')).filter(({ cause }) => /-(died|hung)$/.test(cause));
    expect(died).toEqual([]);
    await svc.end();
  });
});
