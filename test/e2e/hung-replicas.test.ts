import { readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withSvc, type Svc } from '../support/e2e.ts';
import { outcomes, openLoad } from '../support/load.ts';
import { printFigures } from '../support/figures.ts';
import { programsOf } from '../support/processes.ts';
import { signalAll } from '../support/signal-all.ts';
import { waitFor } from '../support/wait-for.ts';

/** Starts two replicas, and stops the program of the first one. Replicas after the second one take so long to start, s. */
async function withStopped(svc: Svc, startSeconds: number): Promise<{ readonly pid: number; readonly endpoint: string }> {
  const file = svc.file(
    'service.yaml',
    [
      'service:',
      '  readiness_probe: /',
      '  replicas: 2',
      'resources:',
      '  ports: 8080',
      `run: if [ $SVC_REPLICA_ID -gt 2 ]; then sleep ${startSeconds}; fi; exec python3 -m http.server 8080`,
      '',
    ].join('\n'),
  );
  await svc.ok(['serve', 'up', file, '-n', 'web']);
  const { endpoint } = await svc.ready('web', 2);
  const [first] = programsOf(svc.home, /http\.server/);
  if (first === undefined) throw new Error('no replica runs');
  signalAll([first.pid], 'SIGSTOP');
  return { pid: first.pid, endpoint };
}

async function states(svc: Svc): Promise<readonly string[]> {
  const { replicas } = await svc.service('web');
  return replicas.map(({ id, status }) => `${id} ${status}`);
}

test('a stopped program is replaced early, and ends when the replacement is ready', async () => {
  await withSvc(async (svc) => {
    const { endpoint } = await withStopped(svc, 1);
    const stoppedAt = Date.now();
    const load = openLoad({ url: endpoint }, 5);
    const requested = await waitFor('a third replica', async () => (await svc.service('web')).replicas.find(({ id }) => id >= 3), {
      timeoutMs: 60_000,
      describe: () => states(svc),
    });
    const tookMs = Date.parse(requested.createdAt) - stoppedAt;
    printFigures('early replacement', { 'requested after, ms': tookMs });
    const isOver = async (): Promise<boolean> => {
      const [one, two, three] = (await svc.service('web')).replicas.map(({ status }) => status);
      const ended = [one, two].filter((status) => status === 'FAILED_PROBING').length;
      return ended === 1 && three === 'READY';
    };
    await waitFor('the stopped replica to end', isOver, { timeoutMs: 60_000, describe: () => states(svc) });
    const result = await load.stop();
    expect(outcomes(result)).toEqual({ 200: result.sent });
    const events = (await svc.events('web')).map(({ message }) => message);
    expect(events.find((message) => / is launched in its place/.test(message))).toMatch(
      /^The probes of replica [12] have failed for \d+ s; replica 3 is launched in its place\.$/,
    );
    await svc.end();
  });
});

test('a program that goes on before its replacement is ready serves, and the replacement ends', async () => {
  await withSvc(async (svc) => {
    const { pid } = await withStopped(svc, 600);
    const hasThree = async (): Promise<boolean> => (await svc.service('web')).replicas.some(({ id }) => id === 3);
    await waitFor('a third replica', hasThree, { timeoutMs: 60_000, describe: () => states(svc) });
    signalAll([pid], 'SIGCONT');
    const expected = ['1 READY', '2 READY', '3 TERMINATED'];
    const isOver = async (): Promise<boolean> => (await states(svc)).join() === expected.join();
    await waitFor('the surplus replica to end', isOver, { timeoutMs: 60_000, describe: () => states(svc) });
    await svc.end();
  });
});

/** Answers probes always, and other requests until the file `hang` exists. */
const hangingServer = `
import os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def do_POST(self):
        while os.path.exists("hang"):
            time.sleep(0.2)
        self.do_GET()
    def log_message(self, *args):
        pass
ThreadingHTTPServer(("", 8080), Handler).serve_forever()
`;

test('a replica that hangs all requests but no probe is replaced, at two requests a second', async () => {
  await withSvc(async (svc) => {
    const lines = hangingServer.trim().replaceAll(/^/gm, '  ');
    const file = svc.file(
      'service.yaml',
      `service:\n  readiness_probe: /\n  replicas: 3\nresources:\n  ports: 8080\nrun: |\n  cat > server.py <<EOF\n${lines}\n  EOF\n  exec python3 server.py\n`,
    );
    await svc.ok(['serve', 'up', file, '-n', 'web']);
    const { endpoint } = await svc.ready('web', 3);
    const post = (): Promise<unknown> => fetch(endpoint, { method: 'POST', signal: AbortSignal.timeout(3_000) }).catch(() => undefined);
    for (let count = 0; count < 30; count += 1) await post();
    const [first] = programsOf(svc.home, /server\.py/);
    if (first === undefined) throw new Error('no replica runs');
    writeFileSync(join(readlinkSync(`/proc/${first.pid}/cwd`), 'hang'), '');
    const hungAt = Date.now();
    const replaced = async (): Promise<boolean> => {
      await post();
      const { replicas } = await svc.service('web');
      return replicas.some(({ status }) => status === 'FAILED_PROBING') && replicas.filter(({ status }) => status === 'READY').length === 3;
    };
    await waitFor('the hung replica to be replaced', replaced, { timeoutMs: 400_000, everyMs: 300, describe: () => states(svc) });
    printFigures('a hung replica at low traffic', { 'replaced after, ms': Date.now() - hungAt });
    const { reason } = (await svc.service('web')).replicas.find(({ status }) => status === 'FAILED_PROBING') ?? {};
    expect(reason).toMatch(/^Replica \d passes its probes, but its last \d+ requests failed for \d+ s \(\d+ hung, 0 broke off\)/);
    await svc.end();
  });
});
