import { expect, test } from 'vitest';
import type { ServiceView } from '../../src/api/contract.ts';
import type { Svc } from '../support/e2e.ts';
import { report } from '../support/figures.ts';
import { describeKubernetes, type PodView, type TestCluster } from '../support/kubernetes.ts';
import { waitFor } from '../support/wait-for.ts';
import { nothingLeft, withKubernetesClusters } from './cluster-world.ts';

/** The head reports its nodes and its visitors; the other nodes visit it continuously. */
const program = `
import http.server, os, socket, sys, time, urllib.request
rank = int(os.environ['SKYPILOT_NODE_RANK'])
ips = os.environ['SKYPILOT_NODE_IPS'].split('\\n')
print('I am', rank, 'of', os.environ['SVC_NUM_NODES'], 'prepared', open('prepared').read().strip(), flush=True)
seen = set()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith('/visit/'): seen.add(self.path[7:])
        body = ' '.join([str(rank), *ips, 'seen', *sorted(seen)]).encode()
        self.send_response(200 if seen else 503)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
if rank == 0:
    http.server.ThreadingHTTPServer(('', 8080), Handler).serve_forever()
while True:
    try: urllib.request.urlopen('http://%s:8080/visit/%d' % (ips[0], rank), timeout=2).read()
    except OSError as error: pass
    time.sleep(0.2)
`;

const lines = (...all: readonly string[]): string => [...all, ''].join('\n');
const resources = ['resources:', '  infra: k8s/a', '  ports: 8080', '  cpus: 0.25+', '  memory: 0.25+'];

const podsOf = async (cluster: TestCluster, part: string): Promise<readonly PodView[]> =>
  (await cluster.pods()).filter(({ name }) => name.includes(part));

async function untilState(svc: Svc, name: string, is: (service: ServiceView) => boolean, what: string): Promise<ServiceView> {
  let last: ServiceView | undefined;
  const poll = async (): Promise<ServiceView | false> => {
    last = await svc.service(name);
    return is(last) && last;
  };
  return waitFor(what, poll, { everyMs: 200, describe: () => last });
}

describeKubernetes('nodes', 'several nodes', () => {
  test('form one replica, which is replaced as a whole after a pod deletion', async () => {
    await withKubernetesClusters([{ name: 'a', nodes: 2 }], async ({ svc, clusters }) => {
      const [cluster] = clusters;
      if (cluster === undefined) throw new Error('no cluster');
      svc.file('pair/program.py', program);
      const file = svc.file(
        'pair/service.yaml',
        lines(
          'num_nodes: 2',
          'service: {readiness_probe: /, replicas: 1, graceful_termination: 2}',
          ...resources,
          'workdir: .',
          'setup: echo $SKYPILOT_SETUP_NODE_RANK > prepared',
          'run: exec python3 program.py',
        ),
      );
      expect(await svc.ok(['serve', 'plan', file])).toContain('2x ');
      const url = (await svc.ok(['serve', 'up', file, '-n', 'pair', '--yes'])).trim();
      await svc.ready('pair', 1);
      const pods = (await podsOf(cluster, 'svc-pair-1-')).toSorted((a, b) => a.name.localeCompare(b.name));
      expect(pods).toHaveLength(2);
      const [head, worker] = pods;
      expect(await (await fetch(url)).text()).toBe(`0 ${head?.ip} ${worker?.ip} seen 1`);
      const log = await svc.ok(['serve', 'logs', 'pair', '1', '--no-follow']);
      expect(log).toContain('(head, rank=0) I am 0 of 2 prepared 0');
      expect(log).toContain(`(worker1, rank=1, ip=${worker?.ip}) I am 1 of 2 prepared 1`);
      const explained = await svc.ok(['serve', 'explain', 'pair']);
      expect(explained).toMatch(/Requests reach it by: (pod address|node port|port-forward)/);
      report(explained.split('\n').find((line) => line.includes('Requests reach it by')) ?? '');

      const at = Date.now();
      await cluster.kubectl('delete', 'pod', worker?.name ?? '', '--wait=false');
      await untilState(svc, 'pair', ({ replicas }) => replicas.find(({ id }) => id === 1)?.status !== 'READY', 'the loss to be noticed');
      report(`a pod of two deleted: noticed after ${Date.now() - at} ms`);
      const replaced = await untilState(
        svc,
        'pair',
        ({ replicas }) => replicas.some((one) => one.id === 2 && one.status === 'READY'),
        'a new pair',
      );
      report(`a new pair ready after ${((Date.now() - at) / 1_000).toFixed(1)} s`);
      expect(replaced.replicas.find(({ id }) => id === 1)?.reason).toMatch(/is gone|rank/);
      await waitFor('both old pods to be gone', async () => (await podsOf(cluster, 'svc-pair-1-')).length === 0);
      await svc.end();
      await nothingLeft(clusters);
    });
  });

  test('run one job, end together, and report missing images or memory', async () => {
    await withKubernetesClusters([{ name: 'a', nodes: 1 }], async ({ svc, clusters }) => {
      const [cluster] = clusters;
      if (cluster === undefined) throw new Error('no cluster');
      const job = svc.file(
        'job.yaml',
        lines('num_nodes: 2', ...resources, 'run: echo "node $SVC_NODE_RANK"; [ "$SVC_NODE_RANK" = 0 ] || exit 6; exec sleep 1000'),
      );
      const launched = await svc.run(['launch', job, '-c', 'duo', '--yes']);
      expect(launched.code).not.toBe(0);
      const [duo] = await svc.clusters();
      expect(duo?.jobs.map(({ status, exitCode }) => [status, exitCode])).toEqual([['FAILED', 6]]);
      const kept = await svc.ok(['logs', 'duo', '--no-follow']);
      expect(kept).toContain('(head, rank=0) node 0');
      expect(kept).toMatch(/\(worker1, rank=1, ip=[0-9.]+\) node 1/);
      await svc.ok(['down', 'duo', '--yes']);

      const noImage = lines(
        'service: {readiness_probe: /, replicas: 1}',
        ...resources,
        '  image_id: docker:svc-test/nosuch:1',
        'config: {kubernetes: {pod_config: {spec: {containers: [{imagePullPolicy: Never}]}}}}',
        'run: "true"',
      );
      await svc.ok(['serve', 'up', svc.file('image.yaml', noImage), '-n', 'image', '--yes']);
      const memory = lines(
        'service: {readiness_probe: /, replicas: 1}',
        'resources: {infra: k8s/a, ports: 8080, cpus: 0.25+, memory: 0.25}',
        'run: exec python3 -c "x = bytearray(10 ** 9)"',
      );
      await svc.ok(['serve', 'up', svc.file('memory.yaml', memory), '-n', 'memory', '--yes']);
      const failed = await untilState(svc, 'image', ({ status }) => status === 'FAILED', 'the image to be given up');
      expect(failed.reason).toContain('ErrImageNeverPull');
      const starved = await untilState(
        svc,
        'memory',
        ({ replicas }) => replicas.some(({ reason }) => reason?.includes('memory') === true),
        'the reason',
      );
      expect(starved.replicas.find(({ reason }) => reason?.includes('memory') === true)?.reason).toMatch(
        /killed: out of memory \(OOM\) \(limit (250|256) MB\)|OOMKilled/,
      );
      report(starved.replicas[0]?.reason ?? '');
      await svc.end();
      await nothingLeft(clusters);
    });
  });
});
