import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { anOffer, aReplica } from '../../../test/support/builders.ts';
import { aDaemonContext } from '../../../test/support/daemon-context.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { providersOf } from '../../../test/support/providers.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import type { ServiceRecord } from '../../domain/records.ts';
import { rememberRefusal } from '../../domain/placement/refusals.ts';
import { FakeCloud } from '../../providers/fake/fake-cloud.ts';
import { FakeProvider } from '../../providers/fake/index.ts';
import { servicePaths } from '../../shared/paths.ts';
import { seededRandom } from '../../shared/random.ts';
import { openStore } from '../../store/open-store.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { createService } from './deploy-service.ts';
import { rollbackService, updateService, type UpdatePlan } from './update-service.ts';

interface Deployed {
  readonly context: DaemonContext;
  readonly workdir: string;
  readonly provider: FakeProvider;
  readonly service: () => Promise<ServiceRecord>;
  readonly update: (more?: string, request?: object) => Promise<UpdatePlan>;
  readonly versionDirs: () => Promise<readonly string[]>;
}

const source = (more: string): string => `resources: {ports: 8080}\nworkdir: .\nrun: serve\nservice:\n  readiness_probe: /\n${more}`;

/** A service at version 1 with a working directory. */
async function withService(use: (deployed: Deployed) => Promise<void>): Promise<void> {
  await withTempHome(async (home) => {
    const clock = new FakeClock();
    const store = await openStore({ path: join(home, 'state.db'), clock });
    const provider = new FakeProvider(new FakeCloud(clock, seededRandom(1), [anOffer({ provider: 'fake', hourlyUsd: 1 })]));
    const context = aDaemonContext(home, store, { clock, ...providersOf(provider) });
    const workdir = join(home, 'work');
    mkdirSync(workdir);
    writeFileSync(join(workdir, 'a.txt'), 'one');
    const request = (
      more = '',
    ): { source: string; file: string; envs: object; secrets: object } & Record<'envs' | 'secrets', Record<string, string>> => ({
      source: source(more),
      file: join(workdir, 'service.yaml'),
      envs: {},
      secrets: {},
    });
    try {
      const { name } = await createService(context, { ...request(), name: 'chat' });
      const service = async (): Promise<ServiceRecord> => {
        const found = await store.services.get(name);
        if (found === undefined) throw new Error('the service is gone');
        return found;
      };
      await use({
        context,
        provider,
        workdir,
        service,
        update: async (more, given = {}) => updateService(context, await service(), { ...request(more), dryRun: false, ...given }),
        versionDirs: async () =>
          readdirSync(servicePaths(context.paths, (await service()).key).dir).filter((entry) => /^\.?v\d/.test(entry)),
      });
    } finally {
      await store.close();
    }
  });
}

async function addReplica({ store }: DaemonContext, service: ServiceRecord): Promise<void> {
  const event = { at: 0, subject: 'chat', subjectKey: '', replicaId: 1, from: null, to: 'READY', cause: 'test', message: '' };
  await store.replicas.add(
    service,
    aReplica({
      id: 1,
      state: 'READY',
      offer: { provider: 'fake', region: 'r', zone: null, instanceType: 'm', resources: '', gpus: 0, spot: false, hourlyUsd: 1 },
    }),
    event,
  );
}

test('a changed file becomes a version; equal working files are kept once', async () => {
  await withService(async ({ context, update, service, versionDirs }) => {
    const plan = await update('  replicas: 3\n');
    expect(plan).toMatchObject({ version: 2, from: 1, replaced: 0, update: { surge: 1, maxUnavailable: 0 } });
    expect(plan.changes).toContain('+  replicas: 3');
    expect(await service()).toMatchObject({ version: 2, memory: { update: { from: 1 }, failures: [], gaveUp: false } });
    expect((await context.store.services.version('chat', 2))?.task.filesVersion).toBe(1);
    expect(await versionDirs()).toEqual(['v1']);
  });
});

test('other working files belong to their version; replicas with other files are replaced', async () => {
  await withService(async ({ context, workdir, update, service, versionDirs }) => {
    await addReplica(context, await service());
    writeFileSync(join(workdir, 'a.txt'), 'two');
    expect(await update()).toMatchObject({ version: 2, replaced: 1, changes: ['+ (files of the working directory or of file_mounts)'] });
    expect(await versionDirs()).toEqual(['v1', 'v2']);
    // Back to the first content: the first copy is used again.
    writeFileSync(join(workdir, 'a.txt'), 'one');
    expect(await update()).toMatchObject({ version: 3, replaced: 0 });
    expect((await context.store.services.version('chat', 3))?.task.filesVersion).toBe(1);
  });
});

test('the service file itself is no working file', async () => {
  await withService(async ({ context, workdir, update }) => {
    writeFileSync(join(workdir, 'service.yaml'), source('  replicas: 3\n'));
    expect(await update('  replicas: 3\n')).toMatchObject({ version: 2, replaced: 0 });
    expect((await context.store.services.version('chat', 2))?.task.filesVersion).toBe(1);
  });
});

test('the same file changes nothing, and a dry run neither', async () => {
  await withService(async ({ update, service, versionDirs }) => {
    expect((await update()).version).toBeNull();
    expect((await update('  replicas: 3\n', { dryRun: true })).version).toBe(2);
    expect([(await service()).version, await versionDirs()]).toEqual([1, ['v1']]);
  });
});

test('a refused update leaves the service and its files as they were', async () => {
  await withService(async ({ context, update, service, versionDirs }) => {
    const before = await service();
    await expect(update('  replicas: -1\n')).rejects.toMatchObject({ code: 'SVC_INVALID_TASK' });
    await expect(update(`  load_balancer: {port: ${before.port + 1}}\n`)).rejects.toMatchObject({ code: 'SVC_NOT_SUPPORTED' });
    await expect(update('  expose: true\n')).rejects.toMatchObject({ code: 'SVC_NOT_SUPPORTED' });
    await expect(update('', { policy: { surge: 0 } })).rejects.toMatchObject({ code: 'SVC_USAGE' });
    context.creating.add(before.key);
    await expect(update('  replicas: 3\n')).rejects.toMatchObject({ code: 'SVC_UPDATE_CONFLICT' });
    context.creating.delete(before.key);
    expect([await service(), await versionDirs()]).toEqual([before, ['v1']]);
  });
});

test('an update of another version than the user saw, or of an ending service, is refused', async () => {
  await withService(async ({ context, update, service }) => {
    await expect(update('  replicas: 3\n', { from: 2 })).rejects.toMatchObject({ code: 'SVC_UPDATE_CONFLICT' });
    expect(await update('  replicas: 3\n', { from: 1 })).toMatchObject({ version: 2 });
    await context.store.services.update(await service(), { desired: 'down' });
    await expect(update('  replicas: 4\n', { dryRun: true })).rejects.toMatchObject({ code: 'SVC_SERVICE_NOT_FOUND' });
  });
});

test('other limits alone make a version, and the same file tries a stopped update again', async () => {
  await withService(async ({ context, update, service }) => {
    expect(await update('', { policy: { surge: 0, maxUnavailable: 1 } })).toMatchObject({ version: 2, keepsReplicas: true });
    expect((await update('', { policy: { surge: 0, maxUnavailable: 1 } })).version).toBeNull();
    const stopped = await service();
    await context.store.services.update(stopped, { memory: { ...stopped.memory, gaveUp: true } });
    expect((await update('', { policy: { surge: 0, maxUnavailable: 1 } })).version).toBe(3);
    expect((await service()).memory.gaveUp).toBe(false);
  });
});

test('a rollback goes to the last version that worked, and is checked like an update', async () => {
  await withService(async ({ context, update, service }) => {
    await update('  replicas: 2\n');
    await update('  replicas: 3\n');
    const current = await service();
    // Version 2 never worked.
    await context.store.services.update(current, { memory: { ...current.memory, provenVersion: 3, provenBefore: 1 } });
    expect(await rollbackService(context, await service(), { dryRun: true })).toMatchObject({ version: 4, from: 3 });
    expect((await rollbackService(context, await service(), { dryRun: true })).changes).toContain('-  replicas: 3');
    const broken = { ...(await context.store.services.version('chat', 1)) };
    const spec = broken.task?.service;
    if (broken.task === undefined || spec === undefined) throw new Error('no version 1');
    const tls = { keyfile: '/nowhere/key.pem', certfile: '/nowhere/cert.pem' };
    const version = { service: 'chat', version: 4, source: source(''), createdAt: 0, task: { ...broken.task, service: { ...spec, tls } } };
    const event = { at: 0, subject: 'chat', subjectKey: '', replicaId: null, from: null, to: null, cause: 'update', message: '' };
    await context.store.services.addVersion(await service(), { version: 4 }, version, event);
    await context.store.services.addVersion(await service(), { version: 5 }, { ...version, version: 5, task: broken.task }, event);
    await expect(rollbackService(context, await service(), { to: 4, dryRun: false })).rejects.toMatchObject({
      code: 'SVC_FILE_UNREADABLE',
    });
  });
});

test('a rollback makes an earlier version the newest one, with its files', async () => {
  await withService(async ({ context, workdir, update, service }) => {
    const { store } = context;
    await expect(rollbackService(context, await service(), { dryRun: false })).rejects.toMatchObject({ code: 'SVC_VERSION_NOT_FOUND' });
    writeFileSync(join(workdir, 'a.txt'), 'two');
    await update('  replicas: 3\n');
    expect(await rollbackService(context, await service(), { dryRun: false })).toMatchObject({ version: 3, from: 2 });
    const [first, , third] = await store.services.versions('chat');
    expect(third).toMatchObject({ source: first?.source, task: { ...first?.task, filesVersion: 1 } });
    await expect(rollbackService(context, await service(), { to: 9, dryRun: false })).rejects.toMatchObject({
      code: 'SVC_VERSION_NOT_FOUND',
    });
    expect(existsSync(servicePaths(context.paths, (await service()).key).versionDir(3))).toBe(false);
  });
});

const otherProgram = 'envs: {A: b}\n';

test('while machines are full, an update is planned and names the lack; with max_unavailable there is none', async () => {
  await withService(async ({ context, provider, update, service }) => {
    await addReplica(context, await service());
    const dryRun = true;
    expect(await update(otherProgram, { dryRun })).not.toHaveProperty('noCapacity');
    const full = vi.spyOn(provider, 'offers');
    full.mockResolvedValue({ offers: [], whyNone: 'lab/h1 has 0 of 2 L4 free, 1 requested.', isFull: true });
    expect((await update(otherProgram, { dryRun })).noCapacity).toBe('fake: lab/h1 has 0 of 2 L4 free, 1 requested.');
    expect(await update(otherProgram, { dryRun, policy: { maxUnavailable: 1 } })).not.toHaveProperty('noCapacity');
    expect((await update(otherProgram, { dryRun, policy: { maxUnavailable: 1, mode: 'canary' } })).noCapacity).toContain('0 of 2 L4 free');
    // Replicas that stay need no machine.
    expect(await update('  replicas: 3\n', { dryRun })).not.toHaveProperty('noCapacity');
    full.mockResolvedValue({ offers: [anOffer({ provider: 'fake', room: 0 })], whyNone: undefined });
    expect((await update(otherProgram, { dryRun })).noCapacity).toContain('has room for 0');
    full.mockResolvedValue({ offers: [], whyNone: 'no host has an L4.' });
    await expect(update(otherProgram, { dryRun })).rejects.toMatchObject({ code: 'SVC_NO_PLACE' });
  });
});

test('the price limit is compared with the offers of now, not with the price of the old replicas', async () => {
  await withService(async ({ context, provider, update, service }) => {
    await addReplica(context, await service());
    const dryRun = true;
    const offers = vi.spyOn(provider, 'offers');
    offers.mockResolvedValue({ offers: [anOffer({ provider: 'fake', hourlyUsd: 3 })], whyNone: undefined });
    expect((await update(`  max_hourly_cost: 2\n${otherProgram}`, { dryRun })).noCapacity).toContain('the cheapest now cost 3.00');
    offers.mockResolvedValue({ offers: [anOffer({ provider: 'fake', hourlyUsd: 0.5 })], whyNone: undefined });
    expect(await update(`  max_hourly_cost: 1.5\n${otherProgram}`, { dryRun })).not.toHaveProperty('noCapacity');
  });
});

test('a remembered quota refusal and the price limit are named as lacks of capacity', async () => {
  await withService(async ({ context, update, service }) => {
    await addReplica(context, await service());
    const dryRun = true;
    expect((await update(`  max_hourly_cost: 1\n${otherProgram}`, { dryRun })).noCapacity).toContain('max_hourly_cost ($1)');
    expect(await update(`  max_hourly_cost: 2\n${otherProgram}`, { dryRun })).not.toHaveProperty('noCapacity');
    const current = await service();
    const remember = async (kind: 'quota' | 'throttled'): Promise<void> => {
      const offer = anOffer({ provider: 'fake', hourlyUsd: 1 });
      const refusals = rememberRefusal([], offer, { kind, scope: 'region', reason: 'limit of 1 machine' }, context.clock.now(), 0);
      await context.store.services.update(await service(), { memory: { ...current.memory, placement: { refusals, starts: [] } } });
    };
    await remember('quota');
    expect((await update(otherProgram, { dryRun })).noCapacity).toMatch(/refused \(quota\) until .*: limit of 1 machine/);
    await remember('throttled');
    expect(await update(otherProgram, { dryRun })).not.toHaveProperty('noCapacity');
  });
});
