import { expect, test } from 'vitest';
import { runInProcess, runWithTime } from '../../../test/support/cli-world.ts';
import { aReplicaView, aServiceView, anEventView } from '../../../test/support/views.ts';
import type { FakeRoutes } from '../../../test/support/fake-client.ts';

const chat = aServiceView();
const embed = aServiceView({ name: 'embed', endpoint: 'http://127.0.0.1:30002' });
const listing: FakeRoutes = { listServices: () => ({ services: [chat, embed] }) };

/** Services that disappear from the second listing after the last was terminated. */
function terminatingRoutes(names: readonly string[]): { readonly routes: FakeRoutes; readonly terminated: string[] } {
  const terminated: string[] = [];
  let polls = 0;
  const routes: FakeRoutes = {
    listServices() {
      polls += terminated.length > 0 ? 1 : 0;
      return { services: names.filter((name) => !terminated.includes(name) || polls < 3).map((name) => aServiceView({ name })) };
    },
    terminateService({ params }) {
      terminated.push(params.name);
      return { service: params.name };
    },
  };
  return { routes, terminated };
}

test('status lists services and replicas, and all fields with --json', async () => {
  const text = await runInProcess(['serve', 'status'], { routes: listing });
  expect(text).toMatchObject({ code: 0, stderr: '' });
  expect(text.stdout).toMatch(/^NAME +VERSION[\s\S]*^chat [\s\S]*^embed [\s\S]*Service Replicas/m);
  const json = await runInProcess(['serve', 'status', 'embed', '--json'], { routes: listing });
  expect(JSON.parse(json.stdout)).toEqual({ services: [embed] });
});

test('status reports a full disk with free space and the next command', async () => {
  const disk = { folder: '/home/ann/.svc', freeBytes: 3_500_000, freeInodes: 12 };
  const routes: FakeRoutes = { listServices: () => ({ services: [chat], disk }) };
  expect((await runInProcess(['serve', 'status'], { routes })).stdout).toMatch(
    /\n\nThe disk of \/home\/ann\/\.svc is full or nearly full: 3 MiB and 12 inodes are free\. Free space there, or run: svc serve down NAME\n$/,
  );
  expect(JSON.parse((await runInProcess(['serve', 'status', '--json'], { routes })).stdout)).toEqual({ services: [chat], disk });
});

test('status without a controller is empty and starts none', async () => {
  expect(await runInProcess(['serve', 'status'])).toMatchObject({ code: 0, stdout: 'No live services.\n' });
  expect((await runInProcess(['serve', 'status', '--json'])).stdout).toBe('{\n  "services": []\n}\n');
});

test('status of an unknown name fails but shows the other services', async () => {
  const { code, stdout, stderr } = await runInProcess(['serve', 'status', 'chat', 'caht'], { routes: listing });
  expect(code).toBe(3);
  expect(stdout).toContain('http://127.0.0.1:30001');
  expect(stderr).toContain("There is no service named 'caht'.\nhint: Did you mean 'chat'?");
  const down = await runInProcess(['serve', 'down', 'caht', '-y'], { routes: listing });
  expect(down.stderr).toContain("There is no service named 'caht'.\nhint: Did you mean 'chat'?");
  const endpoint = await runInProcess(['serve', 'status', '--endpoint', 'caht'], { routes: listing });
  expect(endpoint.stderr).toContain("Did you mean 'chat'?");
});

test.for(['--endpoint chat', 'chat --endpoint'])('status %s prints only the endpoint', async (words) => {
  const argv = ['serve', 'status', ...words.split(' ')];
  expect(await runInProcess(argv, { routes: listing })).toMatchObject({ code: 0, stdout: 'http://127.0.0.1:30001\n' });
});

test('--endpoint requires exactly one name', async () => {
  expect(await runInProcess(['serve', 'status', '--endpoint'], { routes: listing })).toMatchObject({ code: 2 });
  expect(await runInProcess(['serve', 'status', '--endpoint', 'nothing'], { routes: listing })).toMatchObject({ code: 3 });
});

test('--watch into a pipe prints each changed listing', async () => {
  const interrupt = new AbortController();
  let polls = 0;
  const routes: FakeRoutes = {
    listServices() {
      polls += 1;
      if (polls === 5) interrupt.abort();
      return { services: polls < 3 ? [] : [chat] };
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

test('--watch on a terminal redraws in place', async () => {
  const interrupt = new AbortController();
  let polls = 0;
  const routes: FakeRoutes = {
    listServices() {
      polls += 1;
      if (polls === 2) interrupt.abort();
      return { services: [] };
    },
  };
  const { stdout } = await runWithTime(['serve', 'status', '--watch'], { routes, interrupt, tty: true });
  expect(stdout).toBe('\r\u001B[0JNo live services.\n\u001B[1A\r\u001B[0JNo live services.\n');
});

test('down terminates matching services and waits until they are gone', async () => {
  const { routes, terminated } = terminatingRoutes(['chat', 'test-1', 'test-2']);
  const { code, stderr, stdout } = await runWithTime(['serve', 'down', 'test-*', '--yes'], { routes });
  expect({ code, terminated, stdout }).toEqual({ code: 0, terminated: ['test-1', 'test-2'], stdout: '' });
  expect(stderr).toBe('test-1 is gone.\ntest-2 is gone.\n');
});

test('Ctrl-C ends the wait of down and says what goes on', async () => {
  const interrupt = new AbortController();
  const routes: FakeRoutes = {
    listServices: () => ({ services: [aServiceView({ name: 'chat' })] }),
    terminateService({ params }) {
      interrupt.abort();
      return { service: params.name };
    },
  };
  const { stderr } = await runWithTime(['serve', 'down', 'chat', '-y'], { routes, interrupt });
  expect(stderr).toBe("The command no longer waits; the controller goes on taking down 'chat'. See: svc serve status\n");
});

test('down --no-wait returns at once; --json lists the terminating services', async () => {
  const { routes } = terminatingRoutes(['chat']);
  const { code, stdout } = await runInProcess(['serve', 'down', '--all', '--yes', '--no-wait', '--json'], { routes });
  expect({ code, reply: JSON.parse(stdout) }).toEqual({ code: 0, reply: { services: ['chat'] } });
});

test('down without a terminal requires --yes', async () => {
  const { routes, terminated } = terminatingRoutes(['chat']);
  const { code, stderr } = await runInProcess(['serve', 'down', 'chat'], { routes });
  expect({ code, terminated }).toEqual({ code: 2, terminated: [] });
  expect(stderr).toContain('code: SVC_CONFIRM_NEEDED');
});

test('down asks on a terminal; no terminates nothing', async () => {
  const { routes, terminated } = terminatingRoutes(['chat']);
  const { code, stderr } = await runInProcess(['serve', 'down', 'chat'], { routes, tty: true, input: 'n' });
  expect({ code, terminated }).toEqual({ code: 4, terminated: [] });
  expect(stderr).toContain("Take down service 'chat'?");
  expect(stderr).toMatch(/\nNothing was terminated\.\n$/);
  expect(stderr).not.toMatch(/error:|hint:|code:/);
});

test('a no is SVC_ABORTED with --json', async () => {
  const { routes } = terminatingRoutes(['chat']);
  const { code, stdout } = await runInProcess(['serve', 'down', 'chat', '--json'], { routes, tty: true, input: 'n' });
  expect({ code, error: JSON.parse(stdout).error }).toMatchObject({ code: 4, error: { code: 'SVC_ABORTED' } });
});

test('Ctrl-C at the question ends the command with exit code 130', async () => {
  const { routes, terminated } = terminatingRoutes(['chat']);
  const { code, stderr } = await runInProcess(['serve', 'down', 'chat'], { routes, tty: true, input: '\u0003' });
  expect({ code, terminated }).toEqual({ code: 130, terminated: [] });
  expect(stderr).not.toMatch(/error:|hint:|code:/);
});

test('SIGINT at the question ends the command with exit code 130', async () => {
  const { routes } = terminatingRoutes(['chat']);
  const interrupt = new AbortController();
  const asked = runInProcess(['serve', 'down', 'chat'], { routes, tty: true, interrupt });
  setImmediate(() => interrupt.abort());
  expect(await asked).toMatchObject({ code: 130 });
});

test('down asks on a terminal; yes terminates the service', async () => {
  const { routes, terminated } = terminatingRoutes(['chat']);
  const { code } = await runInProcess(['serve', 'down', 'chat', '--no-wait'], { routes, tty: true, input: 'y' });
  expect({ code, terminated }).toEqual({ code: 0, terminated: ['chat'] });
});

test('down with an unknown name terminates the others, then fails', async () => {
  const { routes, terminated } = terminatingRoutes(['chat']);
  expect(await runInProcess(['serve', 'down', 'chat', 'caht', '-y', '--no-wait'], { routes })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining("There is no service named 'caht'."),
  });
  expect(terminated).toEqual(['chat']);
  expect(await runInProcess(['serve', 'down', 'caht', '-y'])).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('SVC_SERVICE_NOT_FOUND'),
  });
});

test('down requires either names or --all', async () => {
  expect(await runInProcess(['serve', 'down'], { routes: listing })).toMatchObject({ code: 2 });
  expect(await runInProcess(['serve', 'down', 'chat', '--all'], { routes: listing })).toMatchObject({ code: 2 });
});

test('down --all without services succeeds', async () => {
  expect(await runInProcess(['serve', 'down', '--all', '-y'])).toMatchObject({ code: 0, stderr: 'No service to terminate.\n' });
});

test('down of a service with failed cleanup fails and suggests --purge', async () => {
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

test('on a terminal, a long event is wrapped below its subject', async () => {
  const message = 'Machine b48047c947fb9056 at local/local is up; the program was started.';
  const { stdout } = await runInProcess(['serve', 'events', 'chat'], {
    routes: { serviceEvents: () => [anEventView({ message })] },
    tty: true,
  });
  expect(stdout).toBe(
    [
      '2030-01-01 11:58:55Z  replica 1    PROVISIONING     Machine b48047c947fb9056 at',
      '                      local/local is up; the program was started.',
      '',
    ].join('\n'),
  );
});

test('logs are printed unchanged, of the newest replica by default', async () => {
  const routes: FakeRoutes = {
    getService: () => aServiceView({ replicas: [aReplicaView({ id: 1 }), aReplicaView({ id: 7 })] }),
    serviceLogs: ({ query }) => [`replica ${query.id}\n`, '\u001B[31mred\u001B[0m'],
  };
  const { stdout, calls } = await runInProcess(['serve', 'logs', 'chat', '--no-follow', '--tail', '5'], { routes });
  expect(stdout).toBe('replica 7\n\u001B[31mred\u001B[0m');
  expect(calls.at(-1)?.input).toEqual({ params: { name: 'chat' }, query: { target: 'replica', id: 7, follow: false, tail: 5 } });
});

test('the access log is formatted, and unchanged with --json', async () => {
  const line =
    '{"at":1893499200000,"id":"r","method":"GET","path":"/","status":200,"outcome":"ok","attempts":1,"total_ms":3,"bytes_in":0,"bytes_out":1}';
  const routes: FakeRoutes = { serviceLogs: () => [line.slice(0, 20), `${line.slice(20)}\n`] };
  const readable = await runInProcess(['serve', 'logs', 'chat', '--load-balancer'], { routes });
  expect(readable.stdout).toBe('2030-01-01 12:00:00  200        -   3.0ms  -              -                GET /\n');
  const onTerminal = await runInProcess(['serve', 'logs', 'chat', '--load-balancer'], { routes, tty: true });
  expect(onTerminal.stdout).toContain('TIME (UTC)           CODE   FIRST   TOTAL  REPLICA');
  expect((await runInProcess(['serve', 'logs', 'chat', '--load-balancer', '--json'], { routes })).stdout).toBe(`${line}\n`);
});

test('the access log with --json has only requests', async () => {
  const said = '{"level":30,"time":"2030-01-01T12:00:00Z","msg":"Listening"}\nnot JSON\n';
  const { stdout } = await runInProcess(['serve', 'logs', 'chat', '--load-balancer', '--json'], { routes: { serviceLogs: () => [said] } });
  expect(stdout).toBe('');
});

test("the controller's log is text, on a terminal and in a pipe, and JSON lines with --json", async () => {
  const line = '{"level":40,"time":"2030-01-01T12:00:00Z","name":"reconciler:chat","msg":"a call failed","err":{"message":"no route"}}';
  const routes: FakeRoutes = { serviceLogs: () => [`${line}\nSyntaxError: no JSON\n`] };
  const shown = '2030-01-01 12:00:00  warn   a call failed: no route\nSyntaxError: no JSON\n';
  const argv = ['serve', 'logs', 'chat', '--controller'];
  expect((await runInProcess(argv, { routes })).stdout).toBe(shown);
  expect((await runInProcess(argv, { routes, tty: true })).stdout).toBe(shown);
  expect((await runInProcess([...argv, '--json'], { routes })).stdout).toBe(`${line}\n`);
});

test('metrics are printed unchanged', async () => {
  const { stdout, calls } = await runInProcess(['serve', 'metrics', 'chat'], { routes: { serviceMetrics: () => ['one 1\n', 'two 2\n'] } });
  expect(stdout).toBe('one 1\ntwo 2\n');
  expect(calls).toMatchObject([{ input: { params: { name: 'chat' } } }]);
});

test('logs refuses several logs, an invalid id and a service without replicas', async () => {
  expect(await runInProcess(['serve', 'logs', 'chat', '1', '--controller'], { routes: {} })).toMatchObject({ code: 2 });
  expect(await runInProcess(['serve', 'logs', 'chat', 'one'], { routes: {} })).toMatchObject({ code: 2 });
  const none: FakeRoutes = { getService: () => aServiceView({ replicas: [] }) };
  expect(await runInProcess(['serve', 'logs', 'chat'], { routes: none })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('SVC_REPLICA_NOT_FOUND'),
  });
});

test('explain of an unknown replica suggests the status command', async () => {
  const routes: FakeRoutes = { explainService: () => ({ service: 'chat', replicas: [], plan: null }) };
  const { code, stderr } = await runInProcess(['serve', 'explain', 'chat', '9'], { routes });
  expect(code).toBe(3);
  expect(stderr).toMatch(/Run: \S*svc serve status chat\n/);
});

test('terminate-replica requires confirmation and announces the replacement', async () => {
  const routes: FakeRoutes = { terminateReplica: ({ params }) => ({ service: params.name, replicaId: params.id }) };
  expect(await runInProcess(['serve', 'terminate-replica', 'chat', '2'], { routes })).toMatchObject({ code: 2, calls: [] });
  const { code, calls, stderr } = await runInProcess(['serve', 'terminate-replica', 'chat', '2', '-y'], { routes });
  expect({ code, calls }).toEqual({
    code: 0,
    calls: [{ name: 'terminateReplica', input: { params: { name: 'chat', id: 2 }, query: { purge: false } } }],
  });
  expect(stderr).toContain('a new one takes its place');
});

test('retry prints the number of ended refusals', async () => {
  const routes: FakeRoutes = { retryService: ({ params }) => ({ service: params.name, refusals: 2 }) };
  const { code, calls, stderr } = await runInProcess(['serve', 'retry', 'chat'], { routes });
  expect({ code, calls }).toEqual({ code: 0, calls: [{ name: 'retryService', input: { params: { name: 'chat' } } }] });
  expect(stderr).toContain("Service 'chat' tries again now: 2 refusals were ended.");
  const json = await runInProcess(['serve', 'retry', 'chat', '--json'], { routes });
  expect(JSON.parse(json.stdout)).toEqual({ service: 'chat', refusals: 2 });
  const stopped: FakeRoutes = { retryService: () => ({ service: 'chat', refusals: 0, restarted: 'canary' }) };
  expect((await runInProcess(['serve', 'retry', 'chat'], { routes: stopped })).stderr).toContain(
    'the canary begins again at its first step',
  );
  const none = await runInProcess(['serve', 'retry', 'chat'], { routes: { retryService: () => ({ service: 'chat', refusals: 0 }) } });
  expect(none.stderr).toContain("Service 'chat' tries again now: no refusal was in force.");
});

test.for(['events', 'logs', 'terminate-replica', 'retry'])('%s without a controller reports an unknown service', async (verb) => {
  const argv = [
    'serve',
    verb,
    'chat',
    ...(verb === 'events' || verb === 'retry' ? [] : ['1']),
    ...(verb === 'terminate-replica' ? ['-y'] : []),
  ];
  expect(await runInProcess(argv)).toMatchObject({ code: 3, stderr: expect.stringContaining('SVC_SERVICE_NOT_FOUND') });
});
