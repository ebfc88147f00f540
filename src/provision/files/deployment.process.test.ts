import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startFakeAws, type FakeAws } from '../../../test/fakes/aws/fake-aws.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { readTree, setTime, writeTree } from '../../../test/support/trees.ts';
import { openS3Store } from '../../buckets/s3.ts';
import { controllerPolicy } from '../../providers/aws/instance-profile.ts';
import type { ExecOptions, ExecResult } from '../../remote/remote.ts';
import { LocalRemote } from '../../remote/local.ts';
import { systemClock } from '../../shared/clock.ts';
import { type JobFiles, deliverFiles } from '../bootstrap.ts';
import { Deployment } from './deployment.ts';

const location = { kind: 's3', region: 'eu-west-1' } as const;
const signal = new AbortController().signal;
let aws: FakeAws;
const before = { ...process.env };

beforeAll(async () => {
  aws = await startFakeAws();
  Object.assign(process.env, aws.env);
});
afterAll(async () => {
  for (const name of Object.keys(aws.env)) {
    const value = before[name];
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await aws.close();
});
afterEach(async () => {
  const left = aws.control.buckets.map(({ name, region }) => openS3Store({ kind: 's3', region }, name));
  for (const store of left) {
    await store.deleteBucket();
    store.close();
  }
  if (left.length > 0) throw new Error(`${left.length} buckets were left`);
});

/** This machine. It records its commands; with a folder given, `PATH` has only that folder's programs. */
class ATestMachine extends LocalRemote {
  readonly commands: string[] = [];
  readonly #programs: string | undefined;

  constructor(baseDir: string, programs?: string) {
    super({ baseDir, enter: [], environment: {}, address: () => ({ kind: 'tcp', host: '127.0.0.1', port: 1 }), clock: systemClock });
    this.#programs = programs;
  }

  override exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    this.commands.push(argv.join(' '));
    return super.exec(argv, this.#programs === undefined ? options : { ...options, env: { PATH: this.#programs, HOME: this.baseDir } });
  }
}

const deploymentIn = (home: string): Deployment =>
  new Deployment({
    key: '0a1b2c3d',
    tags: { 'svc-service-key': '0a1b2c3d' },
    record: join(home, 'service/buckets.json'),
    clock: systemClock,
  });

function filesOf(deployment: Deployment, change: Partial<JobFiles>, log: string[] = []): JobFiles {
  return {
    workdir: undefined,
    mounts: [],
    delivery: deployment.delivery(location),
    log: (line) => log.push(line),
    keepExtra: false,
    ...change,
  };
}

const asJob = (remote: LocalRemote, files: JobFiles): Promise<void> => deliverFiles(remote, join(remote.baseDir, 'workdir'), files, signal);

test('many machines fetch one publication, and the bucket is removed with its owner', async () => {
  await withTempHome(async (home) => {
    const [workdir, data] = [join(home, 'v1/workdir'), join(home, 'v1/mounts/0')];
    writeTree(workdir, {
      'run.py': 'print()',
      'with space/ü\n.txt': 'odd',
      'big.bin': 'B'.repeat(3_000_000),
      tool: { link: '/usr/bin/env' },
    });
    writeTree(data, { 'a.txt': 'a' });
    setTime(join(data, 'a.txt'), 1_700_000_000);
    const deployment = deploymentIn(home);
    const machines = [1, 2, 3].map((number) => new ATestMachine(join(home, `machine ${number}`)));
    const log: string[] = [];
    const job = filesOf(
      deployment,
      { workdir: { path: workdir, name: 'v1-workdir' }, mounts: [{ source: { path: data, name: 'v1-mount-0' }, target: 'data' }] },
      log,
    );
    await Promise.all(machines.map((machine) => asJob(machine, job)));
    writeTree(workdir, { 'data/a.txt': 'a' });
    setTime(join(workdir, 'data/a.txt'), 1_700_000_000);
    for (const { baseDir } of machines) expect(readTree(join(baseDir, 'workdir'))).toEqual(readTree(workdir));
    expect(aws.calls.filter(({ action }) => action === 'CreateBucket')).toHaveLength(1);
    expect(aws.calls.filter(({ action }) => action === 'PutObject').length).toBeLessThan(12);
    expect(log.join('\n')).toMatch(/Publishing to s3:\/\/svc-0a1b2c3d-[0-9a-f]{8}\/: 3 of 3 files, 3\.0 of 3\.0 MB; 3\.0 MB were sent/);
    expect(log.join('\n')).toMatch(/Fetching the working directory on the machine \(3\.\d MB\)/);
    expect(aws.control.buckets[0]?.region).toBe('eu-west-1');
    await deploymentIn(home).remove(signal);
    expect(aws.control.leftovers()).toEqual([]);
    await deploymentIn(home).remove(signal);
  });
});

test('no argument, log or file contains a key or a signed address', async () => {
  await withTempHome(async (home) => {
    writeTree(join(home, 'v1/workdir'), { 'run.py': 'print()', 'big.bin': 'B'.repeat(2_000_000) });
    const deployment = deploymentIn(home);
    const machine = new ATestMachine(join(home, 'machine'));
    const log: string[] = [];
    await asJob(machine, filesOf(deployment, { workdir: { path: join(home, 'v1/workdir'), name: 'v1-workdir' } }, log));
    const files = Object.values(readTree(home)).filter((what) => what.startsWith('file'));
    expect(files.length).toBeGreaterThan(5);
    expect([...machine.commands, ...log, ...files].join('\n')).not.toMatch(/X-Amz-Signature|fake\/secret/);
    await deployment.remove(signal);
  });
});

/** Creates a folder of links to programs of this machine. */
function programsIn(dir: string, ...more: readonly string[]): string {
  mkdirSync(dir);
  const basics = [
    'sh',
    'tar',
    'sha256sum',
    'mkdir',
    'rm',
    'mv',
    'cp',
    'ln',
    'chmod',
    'touch',
    'cat',
    'wc',
    'find',
    'sleep',
    'tr',
    'grep',
    'tail',
  ];
  for (const name of [...basics, ...more]) {
    const path = ['/usr/bin', '/bin'].map((folder) => join(folder, name)).find((one) => existsSync(one));
    if (path !== undefined) symlinkSync(path, join(dir, name));
  }
  return dir;
}

test('a machine with wget but without curl can fetch', async () => {
  await withTempHome(async (home) => {
    const workdir = join(home, 'v1/workdir');
    writeTree(workdir, { 'run.py': 'print()', 'big.bin': 'B'.repeat(2_000_000) });
    const deployment = deploymentIn(home);
    const machine = new ATestMachine(join(home, 'machine'), programsIn(join(home, 'bin'), 'wget'));
    await asJob(machine, filesOf(deployment, { workdir: { path: workdir, name: 'v1-workdir' } }));
    expect(readTree(join(machine.baseDir, 'workdir'))).toEqual(readTree(workdir));
    await deployment.remove(signal);
  });
});

test('a machine without curl and wget is unfit, and the error names both', async () => {
  await withTempHome(async (home) => {
    writeTree(join(home, 'v1/workdir'), { 'run.py': 'print()' });
    const deployment = deploymentIn(home);
    const machine = new ATestMachine(join(home, 'machine'), programsIn(join(home, 'bin')));
    await expect(
      asJob(machine, filesOf(deployment, { workdir: { path: join(home, 'v1/workdir'), name: 'v1-workdir' } })),
    ).rejects.toMatchObject({
      code: 'SVC_HOST_UNFIT',
      message: expect.stringContaining('Neither curl nor wget'),
    });
    await deployment.remove(signal);
  });
});

test('a refused download is retried with fresh addresses; the error omits them', async () => {
  await withTempHome(async (home) => {
    const workdir = join(home, 'v1/workdir');
    writeTree(workdir, { 'run.py': 'print()' });
    const deployment = deploymentIn(home);
    const files = filesOf(deployment, { workdir: { path: workdir, name: 'v1-workdir' } });
    const machine = new ATestMachine(join(home, 'machine'));
    aws.conduct.add({ service: 's3', action: 'GetObject', times: 2 }, { kind: 'error', code: 'AccessDenied' });
    await asJob(machine, files);
    expect(readTree(join(machine.baseDir, 'workdir'))).toEqual(readTree(workdir));
    const mend = aws.conduct.refuse({ service: 's3', action: 'GetObject' }, 'AccessDenied');
    const refused = asJob(new ATestMachine(join(home, 'other')), files);
    await expect(refused).rejects.toMatchObject({ code: 'SVC_BUCKET', message: expect.stringMatching(/^((?!X-Amz|http:).)*403$/) });
    mend();
    await deployment.remove(signal);
  });
});

const fetched = (): number => aws.calls.filter(({ action }) => action === 'GetObject').length;

test('an interrupted fetch resumes without downloading finished objects again', async () => {
  await withTempHome(async (home) => {
    const workdir = join(home, 'v1/workdir');
    for (let index = 0; index < 12; index += 1) writeTree(workdir, { [`${index}.bin`]: `${index} `.repeat(500_000) });
    const deployment = deploymentIn(home);
    const machine = new ATestMachine(join(home, 'machine'));
    const beforehand = fetched();
    const stop = new AbortController();
    const watch = systemClock.every(5, () => fetched() - beforehand >= 6 && stop.abort());
    const files = filesOf(deployment, { workdir: { path: workdir, name: 'v1-workdir' } });
    await deliverFiles(machine, join(machine.baseDir, 'workdir'), files, stop.signal).catch(() => undefined);
    watch();
    await asJob(machine, files);
    expect(readTree(join(machine.baseDir, 'workdir'))).toEqual(readTree(workdir));
    // Twelve files and their folder, plus the at most four downloads that were in progress.
    expect(fetched() - beforehand).toBeLessThanOrEqual(12 + 1 + 4);
    await deployment.remove(signal);
  });
});

test("objects and folders of the user's bucket and HTTP files are copied", async () => {
  await withTempHome(async (home) => {
    const own = openS3Store({ kind: 's3', region: 'ap-northeast-1' }, 'models-of-somebody');
    await own.createBucket({ tags: {}, expireDays: 1 });
    for (const key of ['llama/config.json', 'llama/deep/w 1.bin', 'other.txt']) await own.put(key, key);
    await own.put('llama/', '').catch(() => undefined);
    const deployment = deploymentIn(home);
    const machine = new ATestMachine(join(home, 'machine'));
    const outside = join(home, 'outside');
    writeTree(outside, { kept: 'kept' });
    const mounts = [
      { source: 's3://models-of-somebody/llama/', target: 'models' },
      { source: 's3://models-of-somebody/other.txt', target: 'one/file.txt' },
      { source: 's3://models-of-somebody/llama', target: outside },
      { source: await own.presignGet('other.txt', 60), target: 'from-http.txt' },
    ];
    await asJob(machine, filesOf(deployment, { mounts }));
    const workdir = join(machine.baseDir, 'workdir');
    expect(readFileSync(join(workdir, 'models/deep/w 1.bin'), 'utf8')).toBe('llama/deep/w 1.bin');
    expect(readdirSync(join(workdir, 'models')).toSorted()).toEqual(['config.json', 'deep']);
    expect(readFileSync(join(workdir, 'one/file.txt'), 'utf8')).toBe('other.txt');
    expect(readFileSync(join(workdir, 'from-http.txt'), 'utf8')).toBe('other.txt');
    expect(readdirSync(outside).toSorted()).toEqual(['config.json', 'deep', 'kept']);
    const nothing = asJob(machine, filesOf(deployment, { mounts: [{ source: 's3://models-of-somebody/lla', target: 'x' }] }));
    await expect(nothing).rejects.toMatchObject({ code: 'SVC_BUCKET', message: expect.stringContaining('There is nothing at') });
    await own.deleteBucket();
    own.close();
  });
});

test('a bucket that a crash left incomplete is found and removed', async () => {
  await withTempHome(async (home) => {
    writeTree(join(home, 'v1/workdir'), { 'run.py': 'print()' });
    const files = { workdir: { path: join(home, 'v1/workdir'), name: 'v1-workdir' } };
    // The process fails after the bucket exists: only the record written before the request names the bucket.
    const mend = aws.conduct.refuse({ service: 's3', action: 'PutPublicAccessBlock' }, 'AccessDenied');
    await expect(asJob(new ATestMachine(join(home, 'machine')), filesOf(deploymentIn(home), files))).rejects.toMatchObject({
      code: 'SVC_DENIED',
    });
    mend();
    expect(aws.control.buckets).toHaveLength(1);
    await deploymentIn(home).remove(signal);
    expect(aws.control.leftovers()).toEqual([]);
  });
});

test("all S3 calls are covered by the controller's policy", () => {
  const used = new Set(aws.calls.filter(({ service }) => service === 's3').flatMap(({ permissions }) => permissions));
  const allowed = controllerPolicy.Statement.flatMap(({ Action }) => Action);
  expect([...used].filter((permission) => !allowed.includes(permission))).toEqual([]);
});
