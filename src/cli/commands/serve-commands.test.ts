import { expect, test } from 'vitest';
import { runInProcess, runWithTime } from '../../../test/support/cli-world.ts';
import { aReplicaView, aServiceView, anEventView } from '../../../test/support/views.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';

const chat = aServiceView();
const embed = aServiceView({ name: 'embed', endpoint: 'http://127.0.0.1:30002' });
const listing: FakeRoutes = { listServices: () => ({ services: [chat, embed] }) };

/** Services that are gone at the second look after the last was told to go. */
function leavingRoutes(names: readonly string[]): { readonly routes: FakeRoutes; readonly terminated: string[] } {
  const terminated: string[] = [];
  let looks = 0;
  const routes: FakeRoutes = {
    listServices() {
      looks += terminated.length > 0 ? 1 : 0;
      return { services: names.filter((name) => !terminated.includes(name) || looks < 3).map((name) => aServiceView({ name })) };
    },
    terminateService({ params }) {
      terminated.push(params.name);
      return { service: params.name };
    },
  };
  return { routes, terminated };
}

test('status shows what there is, and everything as JSON', async () => {
  const text = await runInProcess(['serve', 'status'], { routes: listing });
  expect(text).toMatchObject({ code: 0, stderr: '' });
  expect(text.stdout).toMatch(/^NAME +VERSION[\s\S]*^chat [\s\S]*^embed [\s\S]*Service Replicas/m);
  const json = await runInProcess(['serve', 'status', 'embed', '--json'], { routes: listing });
  expect(JSON.parse(json.stdout)).toEqual({ services: [embed] });
});

test('without a controller there are no services, and none is started to find out', async () => {
  expect(await runInProcess(['serve', 'status'])).toMatchObject({ code: 0, stdout: 'No live services.\n' });
  expect((await runInProcess(['serve', 'status', '--json'])).stdout).toBe('{\n  "services": []\n}\n');
});

test('status of a name that nothing has shows the others and fails', async () => {
  const { code, stdout, stderr } = await runInProcess(['serve', 'status', 'chat', 'caht'], { routes: listing });
  expect(code).toBe(3);
  expect(stdout).toContain('http://127.0.0.1:30001');
  expect(stderr).toContain("There is no service named 'caht'.\nhint: Did you mean 'chat'?");
  const down = await runInProcess(['serve', 'down', 'caht', '-y'], { routes: listing });
  expect(down.stderr).toContain("There is no service named 'caht'.\nhint: Did you mean 'chat'?");
  const endpoint = await runInProcess(['serve', 'status', '--endpoint', 'caht'], { routes: listing });
  expect(endpoint.stderr).toContain("Did you mean 'chat'?");
});

test.for(['--endpoint chat', 'chat --endpoint'])('status %s prints the endpoint alone', async (words) => {
  const argv = ['serve', 'status', ...words.split(' ')];
  expect(await runInProcess(argv, { routes: listing })).toMatchObject({ code: 0, stdout: 'http://127.0.0.1:30001\n' });
});

test('one endpoint needs one name', async () => {
  expect(await runInProcess(['serve', 'status', '--endpoint'], { routes: listing })).toMatchObject({ code: 2 });
  expect(await runInProcess(['serve', 'status', '--endpoint', 'nothing'], { routes: listing })).toMatchObject({ code: 3 });
});

test('--watch into a pipe prints a listing whenever it changed', async () => {
  const interrupt = new AbortController();
  let looks = 0;
  const routes: FakeRoutes = {
    listServices() {
      looks += 1;
      if (looks === 5) interrupt.abort();
      return { services: looks < 3 ? [] : [chat] };
    },
  };
  const { code, stdout } = await runWithTime(['serve', 'status', '--watch', '--json'], { routes, interrupt });
  expect(code).toBe(130);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([{ services: [] }, { services: [chat] }]);
});

test('--watch on a terminal draws over what it drew before', async () => {
  const interrupt = new AbortController();
  let looks = 0;
  const routes: FakeRoutes = {
    listServices() {
      looks += 1;
      if (looks === 2) interrupt.abort();
      return { services: [] };
    },
  };
  const { stdout } = await runWithTime(['serve', 'status', '--watch'], { routes, interrupt, tty: true });
  expect(stdout).toBe('\r\u001B[0JNo live services.\n\u001B[1A\r\u001B[0JNo live services.\n');
});

test('down takes down what was named and waits until it is gone', async () => {
  const { routes, terminated } = leavingRoutes(['chat', 'test-1', 'test-2']);
  const { code, stderr, stdout } = await runWithTime(['serve', 'down', 'test-*', '--yes'], { routes });
  expect({ code, terminated, stdout }).toEqual({ code: 0, terminated: ['test-1', 'test-2'], stdout: '' });
  expect(stderr).toBe('test-1 is gone.\ntest-2 is gone.\n');
});

test('down --no-wait returns at once, and --json says what is going', async () => {
  const { routes } = leavingRoutes(['chat']);
  const { code, stdout } = await runInProcess(['serve', 'down', '--all', '--yes', '--no-wait', '--json'], { routes });
  expect({ code, reply: JSON.parse(stdout) }).toEqual({ code: 0, reply: { services: ['chat'] } });
});

test('down needs a person or --yes', async () => {
  const { routes, terminated } = leavingRoutes(['chat']);
  const { code, stderr } = await runInProcess(['serve', 'down', 'chat'], { routes });
  expect({ code, terminated }).toEqual({ code: 2, terminated: [] });
  expect(stderr).toContain('code: SVC_CONFIRM_NEEDED');
});

test('down asks on a terminal, and no means no', async () => {
  const { routes, terminated } = leavingRoutes(['chat']);
  const { code, stderr } = await runInProcess(['serve', 'down', 'chat'], { routes, tty: true, input: 'n' });
  expect({ code, terminated }).toEqual({ code: 4, terminated: [] });
  expect(stderr).toContain("Take down service 'chat'?");
  expect(stderr).toMatch(/\nNothing was taken down\.\n$/);
  expect(stderr).not.toMatch(/error:|hint:|code:/);
});

test('a no is told to programs as any other end', async () => {
  const { routes } = leavingRoutes(['chat']);
  const { code, stdout } = await runInProcess(['serve', 'down', 'chat', '--json'], { routes, tty: true, input: 'n' });
  expect({ code, error: JSON.parse(stdout).error }).toMatchObject({ code: 4, error: { code: 'SVC_ABORTED' } });
});

test('Ctrl-C at the question ends the command as Ctrl-C does', async () => {
  const { routes, terminated } = leavingRoutes(['chat']);
  const { code, stderr } = await runInProcess(['serve', 'down', 'chat'], { routes, tty: true, input: '\u0003' });
  expect({ code, terminated }).toEqual({ code: 130, terminated: [] });
  expect(stderr).not.toMatch(/error:|hint:|code:/);
});

test('a signal ends the question, too', async () => {
  const { routes } = leavingRoutes(['chat']);
  const interrupt = new AbortController();
  const asked = runInProcess(['serve', 'down', 'chat'], { routes, tty: true, interrupt });
  setImmediate(() => interrupt.abort());
  expect(await asked).toMatchObject({ code: 130 });
});

test('down asks on a terminal, and yes means yes', async () => {
  const { routes, terminated } = leavingRoutes(['chat']);
  const { code } = await runInProcess(['serve', 'down', 'chat', '--no-wait'], { routes, tty: true, input: 'y' });
  expect({ code, terminated }).toEqual({ code: 0, terminated: ['chat'] });
});

test('down of a name that nothing has touches nothing', async () => {
  const { routes, terminated } = leavingRoutes(['chat']);
  expect(await runInProcess(['serve', 'down', 'chat', 'caht', '-y'], { routes })).toMatchObject({ code: 3 });
  expect(terminated).toEqual([]);
  expect(await runInProcess(['serve', 'down', 'caht', '-y'])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('SVC_SERVICE_NOT_FOUND'),
  });
});

test('down wants names or --all, not both and not neither', async () => {
  expect(await runInProcess(['serve', 'down'], { routes: listing })).toMatchObject({ code: 2 });
  expect(await runInProcess(['serve', 'down', 'chat', '--all'], { routes: listing })).toMatchObject({ code: 2 });
});

test('down of everything, where there is nothing, is done', async () => {
  expect(await runInProcess(['serve', 'down', '--all', '-y'])).toMatchObject({ code: 0, stderr: 'No service to take down.\n' });
});

test('a service that cannot be removed completely is told, with the way out', async () => {
  const stuck = aServiceView({ status: 'FAILED_CLEANUP', reason: 'replica 1: the place does not answer' });
  const routes: FakeRoutes = { listServices: () => ({ services: [stuck] }), terminateService: () => ({ service: 'chat' }) };
  const { code, stderr } = await runInProcess(['serve', 'down', 'chat', '-y'], { routes });
  expect(code).toBe(70);
  expect(stderr).toMatch(/could not be removed completely: replica 1: the place does not answer/);
  expect(stderr).toMatch(/svc serve down chat --purge\ncode: SVC_CLEANUP_FAILED/);
});

test('events are lines with time, subject, state and cause', async () => {
  const routes: FakeRoutes = {
    serviceEvents: () => [
      anEventView({ replicaId: null, to: 'CONTROLLER_INIT', message: 'Put up.' }),
      anEventView({ id: 2, message: 'Asked for\u001B[2J a machine.' }),
    ],
  };
  expect((await runInProcess(['serve', 'events', 'chat'], { routes })).stdout).toBe(
    [
      '2030-01-01 11:58:55Z  service      CONTROLLER_INIT  Put up.',
      '2030-01-01 11:58:55Z  replica 1    PROVISIONING     Asked for a machine.',
      '',
    ].join('\n'),
  );
  const json = await runInProcess(['serve', 'events', 'chat', '--json'], { routes });
  expect(
    json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([{ id: 1 }, { id: 2 }]);
});

test('on a terminal a long event goes on below its subject', async () => {
  const message = 'Machine b48047c947fb9056 at local/local is up; the program was told to start.';
  const { stdout } = await runInProcess(['serve', 'events', 'chat'], {
    routes: { serviceEvents: () => [anEventView({ message })] },
    tty: true,
  });
  expect(stdout).toBe(
    [
      '2030-01-01 11:58:55Z  replica 1    PROVISIONING     Machine b48047c947fb9056 at',
      '                      local/local is up; the program was told to start.',
      '',
    ].join('\n'),
  );
});

test('logs of a replica come as they are, of the newest when none is named', async () => {
  const routes: FakeRoutes = {
    getService: () => aServiceView({ replicas: [aReplicaView({ id: 1 }), aReplicaView({ id: 7 })] }),
    serviceLogs: ({ query }) => [`replica ${query.id}\n`, '\u001B[31mred\u001B[0m'],
  };
  const { stdout, calls } = await runInProcess(['serve', 'logs', 'chat', '--no-follow', '--tail', '5'], { routes });
  expect(stdout).toBe('replica 7\n\u001B[31mred\u001B[0m');
  expect(calls.at(-1)?.input).toEqual({ params: { name: 'chat' }, query: { target: 'replica', id: 7, follow: false, tail: 5 } });
});

test('the access log is made readable, and left as it is with --json', async () => {
  const line =
    '{"at":1893499200000,"id":"r","method":"GET","path":"/","status":200,"outcome":"ok","attempts":1,"total_ms":3,"bytes_in":0,"bytes_out":1}';
  const routes: FakeRoutes = { serviceLogs: () => [line.slice(0, 20), `${line.slice(20)}\n`] };
  const readable = await runInProcess(['serve', 'logs', 'chat', '--load-balancer'], { routes });
  expect(readable.stdout).toBe('2030-01-01 12:00:00  200        -   3.0ms  -              -                GET /\n');
  const onTerminal = await runInProcess(['serve', 'logs', 'chat', '--load-balancer'], { routes, tty: true });
  expect(onTerminal.stdout).toContain('TIME (UTC)           CODE   FIRST   TOTAL  REPLICA');
  expect((await runInProcess(['serve', 'logs', 'chat', '--load-balancer', '--json'], { routes })).stdout).toBe(`${line}\n`);
});

test('with --json there are requests alone, without what the process said', async () => {
  const said = '{"level":30,"time":"2030-01-01T12:00:00Z","msg":"Listening"}\nnot JSON\n';
  const { stdout } = await runInProcess(['serve', 'logs', 'chat', '--load-balancer', '--json'], { routes: { serviceLogs: () => [said] } });
  expect(stdout).toBe('');
});

test('the metrics are printed as they are', async () => {
  const { stdout, calls } = await runInProcess(['serve', 'metrics', 'chat'], { routes: { serviceMetrics: () => ['one 1\n', 'two 2\n'] } });
  expect(stdout).toBe('one 1\ntwo 2\n');
  expect(calls).toMatchObject([{ input: { params: { name: 'chat' } } }]);
});

test('one log at a time, of a replica that can exist', async () => {
  expect(await runInProcess(['serve', 'logs', 'chat', '1', '--controller'], { routes: {} })).toMatchObject({ code: 2 });
  expect(await runInProcess(['serve', 'logs', 'chat', 'one'], { routes: {} })).toMatchObject({ code: 2 });
  const none: FakeRoutes = { getService: () => aServiceView({ replicas: [] }) };
  expect(await runInProcess(['serve', 'logs', 'chat'], { routes: none })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('SVC_REPLICA_NOT_FOUND'),
  });
});

test('explaining a replica that is not there names the service to look at', async () => {
  const routes: FakeRoutes = { explainService: () => ({ service: 'chat', replicas: [], plan: null }) };
  const { code, stderr } = await runInProcess(['serve', 'explain', 'chat', '9'], { routes });
  expect(code).toBe(3);
  expect(stderr).toMatch(/Run: \S*svc serve status chat\n/);
});

test('terminate-replica asks, then tells what follows', async () => {
  const routes: FakeRoutes = { terminateReplica: ({ params }) => ({ service: params.name, replicaId: params.id }) };
  expect(await runInProcess(['serve', 'terminate-replica', 'chat', '2'], { routes })).toMatchObject({ code: 2, calls: [] });
  const { code, calls, stderr } = await runInProcess(['serve', 'terminate-replica', 'chat', '2', '-y'], { routes });
  expect({ code, calls }).toEqual({
    code: 0,
    calls: [{ name: 'terminateReplica', input: { params: { name: 'chat', id: 2 }, query: { purge: false } } }],
  });
  expect(stderr).toContain('a new one takes its place');
});

test.for(['events', 'logs', 'terminate-replica'])('%s of a service, where no controller is or was, finds none', async (verb) => {
  const argv = ['serve', verb, 'chat', ...(verb === 'events' ? [] : ['1']), ...(verb === 'terminate-replica' ? ['-y'] : [])];
  expect(await runInProcess(argv)).toMatchObject({ code: 3, stderr: expect.stringContaining('SVC_SERVICE_NOT_FOUND') });
});
