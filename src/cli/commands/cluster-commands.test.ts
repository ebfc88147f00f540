import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runInProcess } from '../../../test/support/cli-world.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';
import { aClusterView, aHealthReply, aServiceView } from '../../../test/support/views.ts';
import type { JobView } from '../../api/contract.ts';

const job: JobView = {
  id: 1,
  name: null,
  status: 'SUCCEEDED',
  createdAt: '2030-01-01T10:00:00.000Z',
  endedAt: '2030-01-01T10:01:00.000Z',
  exitCode: 0,
};
const withJob = (change: Partial<JobView>): FakeRoutes => ({
  listClusters: () => ({ clusters: [aClusterView({ jobs: [{ ...job, ...change }] })] }),
  clusterLogs: () => ['output\n'],
  launch: () => ({ cluster: aClusterView(), jobId: 1 }),
});

test.for([60, 80, 200])('status lists the controller among the clusters, then services, in %d columns', async (width) => {
  const routes: FakeRoutes = {
    health: () => aHealthReply(),
    listClusters: () => ({ clusters: [aClusterView()] }),
    listServices: () => ({ services: [aServiceView()] }),
  };
  const { stdout } = await runInProcess(['status'], { routes, tty: true, width });
  expect(stdout).toMatchSnapshot();
  expect(JSON.parse((await runInProcess(['status', '--json'], { routes })).stdout)).toEqual({
    controller: aHealthReply(),
    clusters: [aClusterView()],
    services: [aServiceView()],
  });
});

test("status shows the controller's location and cost", async () => {
  const place = { provider: 'aws', region: 'us-east-2', zone: null, instanceType: 'm6i.xlarge', hourlyUsd: 0.192 };
  const routes: FakeRoutes = {
    health: () => ({ ...aHealthReply(), place }),
    listClusters: () => ({ clusters: [] }),
    listServices: () => ({ services: [] }),
  };
  expect((await runInProcess(['status'], { routes, tty: true, width: 120 })).stdout).toMatch(/svc-controller .* aws\/us-east-2 .* \$0\.19/);
});

test('status shows only the named clusters and suggests a similar name', async () => {
  const routes: FakeRoutes = {
    health: () => aHealthReply(),
    listClusters: () => ({ clusters: [aClusterView({ name: 'dev' }), aClusterView({ name: 'box' })] }),
  };
  const one = await runInProcess(['status', 'box'], { routes });
  expect([one.code, one.stdout.includes('box'), one.stdout.includes('dev')]).toEqual([0, true, false]);
  const json: { readonly clusters: readonly { readonly name: string }[] } = JSON.parse(
    (await runInProcess(['status', 'd*', '--json'], { routes })).stdout,
  );
  expect(json.clusters.map(({ name }) => name)).toEqual(['dev']);
  const controller = await runInProcess(['status', 'svc-controller'], { routes });
  expect([controller.stdout.includes('svc-controller'), controller.stdout.includes('dev')]).toEqual([true, false]);
  const wrong = await runInProcess(['status', 'dev', 'boxx'], { routes });
  expect([wrong.code, wrong.stdout.includes('dev')]).toEqual([3, true]);
  expect(wrong.stderr).toContain("There is no cluster named 'boxx'.\nhint: Did you mean 'box'?");
});

test('status does not start a controller', async () => {
  expect(await runInProcess(['status'])).toMatchObject({
    code: 0,
    stdout: 'Clusters\nNo existing clusters.\n\nServices\nNo live services.\n',
  });
  expect(JSON.parse((await runInProcess(['status', '--json'])).stdout)).toEqual({ controller: null, clusters: [], services: [] });
});

test.for([
  ['SUCCEEDED', 0, 0],
  ['FAILED', 7, 100],
  ['FAILED_SETUP', 1, 100],
  ['CANCELLED', null, 103],
] as const)('logs of a %s job end with its result', async ([status, exitCode, code]) => {
  const result = await runInProcess(['logs', 'dev', '1'], { routes: withJob({ status, exitCode }) });
  expect(result).toMatchObject({ code, stdout: 'output\n' });
  expect(result.stderr).toContain(status);
});

test("logs --no-follow does not report the job's result", async () => {
  const result = await runInProcess(['logs', 'dev', '--no-follow', '--tail', '3'], { routes: withJob({ status: 'FAILED' }) });
  expect(result).toMatchObject({ code: 0, stdout: 'output\n', stderr: '' });
  expect(result.calls.at(-1)?.input).toEqual({ params: { name: 'dev' }, query: { follow: false, job: 1, tail: 3 } });
});

test('exec quotes the words of a command, and follows the job', async () => {
  const { code, stdout, calls } = await runInProcess(['exec', 'dev', '--', 'echo', "it's", '--all'], {
    routes: withJob({ status: 'FAILED', exitCode: 3 }),
  });
  expect({ code, stdout }).toEqual({ code: 100, stdout: 'output\n' });
  expect(calls[0]).toEqual({
    name: 'launch',
    input: {
      body: {
        source: JSON.stringify({ run: `echo 'it'\\''s' --all` }),
        file: '/project/-',
        envs: {},
        secrets: {},
        mode: 'exec',
        cluster: 'dev',
      },
      timeoutMs: 600_000,
    },
  });
});

test('exec requires a file or a command', async () => {
  expect(await runInProcess(['exec', 'dev'], { routes: {} })).toMatchObject({ code: 2 });
  expect(await runInProcess(['exec', 'dev', 'task.yaml', '--', 'true'], { routes: {} })).toMatchObject({ code: 2 });
  const routes = { listClusters: () => ({ clusters: [aClusterView({ name: 'dev' })] }) };
  const { stderr } = await runInProcess(['exec', 'dev', 'nvidia-smi -L'], { routes });
  expect(stderr).toContain("For a command: svc exec dev -- 'nvidia-smi -L'");
  const wrong = await runInProcess(['exec', 'dve', 'echo hi'], { routes });
  expect(wrong.code).toBe(3);
  expect(wrong.stderr).toContain("error: There is no cluster named 'dve'.\nhint: Did you mean 'dev'? Run: svc status\n");
  expect((await runInProcess(['exec', 'dve', 'echo hi'])).stderr).toContain("There is no cluster named 'dve'.");
});

test('launch says where to read the addresses of ports', async () => {
  const file = join(import.meta.dirname, '../../../examples/hello/service.yaml');
  const { stderr } = await runInProcess(['launch', file, '--detach', '--yes'], { routes: withJob({}) });
  expect(stderr).toMatch(/The log says where its ports \(\d+\) are reached, and so does: svc status dev/);
});

test('exec --detach and --json return at once', async () => {
  const routes = withJob({});
  expect(await runInProcess(['exec', 'dev', '--detach', '--', 'true'], { routes })).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('svc logs dev 1'),
  });
  const json = await runInProcess(['exec', 'dev', '--json', '--', 'true'], { routes });
  expect(JSON.parse(json.stdout)).toEqual({ cluster: aClusterView(), jobId: 1 });
});

test.for(['logs nothing', 'exec nothing -- true', 'down nothing -y'])(
  '%s without a controller reports an unknown cluster',
  async (line) => {
    expect(await runInProcess(line.split(' '))).toMatchObject({ code: 3, stderr: expect.stringContaining('SVC_CLUSTER_NOT_FOUND') });
  },
);

test('the controller is refused as a cluster by launch and down', async () => {
  expect(await runInProcess(['down', 'svc-controller', '-y'], { routes: {} })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('svc controller stop'),
  });
  expect(await runInProcess(['launch', 'x.yaml', '-c', 'svc-controller'], { routes: {} })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('SVC_BAD_NAME'),
  });
  expect(await runInProcess(['launch', 'x.yaml', '-c', '1st'], { routes: {} })).toMatchObject({ code: 2 });
});

test('down terminates the named cluster', async () => {
  const routes: FakeRoutes = { ...withJob({}), terminateCluster: ({ params }) => ({ cluster: params.name }) };
  const { code, calls } = await runInProcess(['down', 'dev', '-y', '--no-wait', '--purge'], { routes });
  expect(code).toBe(0);
  expect(calls.at(-1)).toEqual({ name: 'terminateCluster', input: { params: { name: 'dev' }, query: { purge: true } } });
});
