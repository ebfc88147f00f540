import { chmodSync, existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { failureOf } from '../../test/support/failure-of.ts';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { anObject, ScriptedApiServer, sendJson, sendStatus } from '../../test/support/scripted-api-server.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { systemClock } from '../shared/clock.ts';
import { messageOf } from '../shared/errors.ts';
import { noFence } from '../shared/fence.ts';
import { openKubeApi } from './contexts.ts';
import { signalAll } from '../../test/support/signal-all.ts';

const path = '/api/v1/namespaces/default/configmaps/one';
let server: ScriptedApiServer;

beforeEach(async () => {
  server = await ScriptedApiServer.start((_request, response) => sendJson(response, anObject('one', '1')));
});

/** A credential plugin: a script that records each call. */
function aPlugin(script: string): Readonly<Record<string, unknown>> {
  const command = join(server.folder, 'plugin.sh');
  writeFileSync(command, `#!/bin/sh\n${script}\n`);
  chmodSync(command, 0o755);
  return { exec: { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never', provideClusterInfo: true } };
}

const credential = (token: string): string => JSON.stringify({ kind: 'ExecCredential', status: { token } });

test("a credential plugin runs once and receives kubectl's environment", async () => {
  const user = aPlugin(`echo "$KUBERNETES_EXEC_INFO" >> ${join(server.folder, 'asked')}\necho '${credential('t1')}'`);
  const api = server.open({ user });
  await api.get(path);
  await api.get(path);
  expect(server.seen.map((request) => request.headers.authorization)).toEqual(['Bearer t1', 'Bearer t1']);
  const [asked, ...again] = readFileSync(join(server.folder, 'asked'), 'utf8').trim().split('\n');
  expect(again).toEqual([]);
  expect(JSON.parse(asked ?? '')).toMatchObject({ kind: 'ExecCredential', spec: { interactive: false, cluster: { server: server.url } } });
});

test('requests, watches and streams renew a token that the server rejects', async () => {
  const user = aPlugin(
    `echo x >> ${join(server.folder, 'asked')}\necho '{"kind":"ExecCredential","status":{"token":"t'$(wc -l < ${join(server.folder, 'asked')})'"}}'`,
  );
  const api = server.open({ user });
  let accepted = 'Bearer t2';
  server.answer((request, response) => {
    if (request.headers.authorization !== accepted) sendStatus(response, 401, 'Unauthorized');
    else if (request.url.searchParams.has('watch')) response.end();
    else sendJson(response, anObject('one', '1'));
  });
  expect((await api.get(path))?.metadata.name).toBe('one');
  accepted = 'Bearer t3';
  const end = await api.watch('/api/v1/pods', { resourceVersion: '1', signal: new AbortController().signal, onEvent: () => undefined });
  expect(end).toEqual({ how: 'ended' });
  accepted = 'Bearer t4';
  server.refuseSocket = (request) =>
    request.headers.authorization === accepted ? undefined : { code: 401, body: { kind: 'Status', message: 'who?' } };
  const process = await api.exec({ namespace: 'default', name: 'p' }, ['true']);
  expect((await process.ended).exitCode).toBeUndefined();
  expect(server.seen.at(-1)?.headers.authorization).toBe('Bearer t4');
});

test('concurrent requests share a login, and a rejected token is renewed once', async () => {
  const asked = join(server.folder, 'asked');
  const user = aPlugin(`sleep 0.2; echo x >> ${asked}\necho '{"kind":"ExecCredential","status":{"token":"t'$(wc -l < ${asked})'"}}'`);
  const refused: ServerResponse[] = [];
  let last: ServerResponse | undefined;
  server.answer((request, response) => {
    if (request.headers.authorization !== 'Bearer t1') return sendJson(response, anObject('one', '1'));
    // The last request is refused only after the others have logged in again.
    if (refused.length < 4) refused.push(response);
    else last = response;
    if (last !== undefined) for (const one of refused) sendStatus(one, 401, 'Unauthorized');
  });
  const api = server.open({ user });
  const all = Array.from({ length: 5 }, () => api.get(path));
  await waitFor('the others to be answered', () => server.seen.length === 9);
  if (last !== undefined) sendStatus(last, 401, 'Unauthorized');
  expect((await Promise.all(all)).map((one) => one?.metadata.name)).toEqual(Array(5).fill('one'));
  expect(readFileSync(asked, 'utf8')).toBe('x\nx\n');
});

test('a login that is rejected twice is reported without the token', async () => {
  server.answer((_request, response) => sendStatus(response, 401, 'Unauthorized', 'Unauthorized'));
  const error = await failureOf(server.open({ user: { token: 'very-secret' } }).get(path));
  expect(error.code).toBe('SVC_CREDENTIALS');
  expect(error.message).toBe(
    "The cluster test does not accept the user's login (to get configmaps one in namespace default): Unauthorized",
  );
  expect(server.seen).toHaveLength(2);
  server.refuseSocket = () => ({ code: 401, body: { kind: 'Status', message: 'Unauthorized' } });
  expect((await failureOf(server.open({ user: { token: 'very-secret' } }).portForward({ namespace: 'default', name: 'p' }, 80))).code).toBe(
    'SVC_CREDENTIALS',
  );
});

test('a failing plugin is reported with its own output', async () => {
  const error = await failureOf(server.open({ user: aPlugin('echo "please run: cloud login" >&2; exit 1') }).get(path));
  expect(error.code).toBe('SVC_CREDENTIALS');
  expect(error.message).toContain('plugin.sh): please run: cloud login');
});

test('the output of a plugin is not quoted, as it may be the credential', async () => {
  const garbage = await failureOf(server.open({ user: aPlugin('echo secret-token-without-json') }).get(path));
  const empty = await failureOf(server.open({ user: aPlugin(`echo '{"token":"secret-token"}'`) }).get(path));
  for (const error of [garbage, empty]) {
    expect(error.message).toContain('what it printed is not a credential');
    expect(`${error.message} ${error.hint} ${error.stack} ${messageOf(error.cause)}`).not.toContain('secret-token');
  }
});

test('a missing plugin is named in the error', async () => {
  const error = await failureOf(server.open({ user: { exec: { apiVersion: 'v1', command: '/no/such/plugin' } } }).get(path));
  expect(error.message).toMatch(/The login to the cluster test failed \(credential plugin \/no\/such\/plugin\): .*ENOENT/);
});

test('a plugin that never answers ends the login with an error after a minute', async () => {
  const clock = new FakeClock();
  const pidFile = join(server.folder, 'pid');
  const result = failureOf(server.open({ user: aPlugin(`echo $$ > ${pidFile}; exec sleep 3600`), clock }).get(path));
  // The file exists before the number is written to it.
  const written = (): string | undefined => (existsSync(pidFile) ? /^(\d+)\n$/.exec(readFileSync(pidFile, 'utf8'))?.[1] : undefined);
  const pid = Number(await waitFor('the plugin', written));
  onTestFinished(() => signalAll([pid], 'SIGKILL'));
  await clock.advance(61_000);
  expect((await result).message).toContain('no answer within 60 s');
});

test('a token file is read without surrounding whitespace', async () => {
  writeFileSync(join(server.folder, 'token'), 'from-file\n');
  await server.open({ user: { tokenFile: 'token' } }).get(path);
  expect(server.seen[0]?.headers.authorization).toBe('Bearer from-file');
});

test('user name, password, and impersonation with groups are sent', async () => {
  await server.open({ user: { username: 'me', password: 'pw', as: 'other', 'as-groups': ['a', 'b'], 'as-uid': 'u1' } }).get(path);
  expect(server.seen[0]?.headers).toMatchObject({
    authorization: `Basic ${Buffer.from('me:pw').toString('base64')}`,
    'impersonate-user': 'other',
    'impersonate-group': 'a, b',
    'impersonate-uid': 'u1',
  });
});

test('a server with another certificate receives nothing unless the kubeconfig allows it', async () => {
  const cluster = { 'certificate-authority-data': undefined };
  const error = await failureOf(server.open({ cluster }).get(path));
  expect(error.code).toBe('SVC_CREDENTIALS');
  expect(error.message).toContain('shows a certificate that is not trusted: self-signed certificate');
  await expect(server.open({ cluster }).exec({ namespace: 'default', name: 'p' }, ['true'])).rejects.toThrow('self-signed certificate');
  expect(server.seen).toEqual([]);
  expect((await server.open({ cluster: { ...cluster, 'insecure-skip-tls-verify': true } }).get(path))?.metadata.name).toBe('one');
});

test("the certificate's name may differ from the address with tls-server-name", async () => {
  expect((await server.open({ cluster: { 'tls-server-name': 'localhost' } }).get(path))?.metadata.name).toBe('one');
  await expect(server.open({ cluster: { 'tls-server-name': 'elsewhere' } }).get(path)).rejects.toThrow('does not match');
});

test('a changed kubeconfig is read again', async () => {
  const file = server.writeKubeconfig({ user: { token: 'old' } });
  const api = openKubeApi('test', { fence: noFence, clock: systemClock, random: () => 0, source: { files: [file], pod: undefined } });
  await api.get(path);
  server.writeKubeconfig({ user: { token: 'new' } });
  utimesSync(file, 1, 1);
  await api.get(path);
  expect(server.seen.map((request) => request.headers.authorization)).toEqual(['Bearer old', 'Bearer new']);
});

test('an API server below a URL path receives requests below that path', async () => {
  await server.open({ cluster: { server: `${server.url}/k8s/clusters/c-1/` } }).get(path);
  expect(server.seen[0]?.url.pathname).toBe(`/k8s/clusters/c-1${path}`);
});

test("requests and streams use the kubeconfig's proxy", async () => {
  const asked: string[] = [];
  const proxy = createServer();
  proxy.on('connect', (request, socket) => {
    asked.push(request.url ?? '');
    const onward = connect(server.port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    onward.pipe(socket).pipe(onward);
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', () => resolve()));
  try {
    const address = proxy.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    // This name does not resolve: only the proxy can reach the server.
    const cluster = { server: 'https://api.invalid:6443', 'tls-server-name': 'localhost', 'proxy-url': `http://127.0.0.1:${port}` };
    const api = server.open({ cluster });
    expect((await api.get(path))?.metadata.name).toBe('one');
    await (
      await api.exec({ namespace: 'default', name: 'p' }, ['true'])
    ).ended;
    expect(asked).toEqual(['api.invalid:6443', 'api.invalid:6443']);
  } finally {
    server.cut();
    proxy.close();
  }
});
