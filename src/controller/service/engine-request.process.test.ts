import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import type { ReplicaAddress } from '../../shared/replica-address.ts';
import { systemClock } from '../../shared/clock.ts';
import { measureReplica, tellEngine } from './engine-request.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function serve(answer: RequestListener): Promise<ReplicaAddress> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('not listening');
  return { kind: 'tcp', host: '127.0.0.1', port: address.port };
}

const measure = async (answer: RequestListener): ReturnType<typeof measureReplica> =>
  measureReplica(await serve(answer), '/metrics', systemClock, new AbortController().signal);

const tell = async (address: ReplicaAddress): ReturnType<typeof tellEngine> =>
  tellEngine(address, '/sleep?level=1', systemClock, new AbortController().signal);

test('the metrics of an engine are read over HTTP', async () => {
  const metrics = await measure(({ url }, response) => response.end(url === '/metrics' ? 'tgi_queue_size 3\n' : ''));
  expect(metrics).toEqual({ waiting: 3, cacheUsage: undefined });
});

const endless: RequestListener = (_request, response) => {
  response.write('tgi_queue_size 3\n');
  const more = (): void => void (response.destroyed || response.write('#'.repeat(65_536), () => setImmediate(more)));
  more();
};

test('another status, an endless body and silence are missing metrics', async () => {
  expect(await measure((_request, response) => response.writeHead(404).end('tgi_queue_size 3\n'))).toBeUndefined();
  expect(await measure(endless)).toBeUndefined();
  expect(await measure(() => undefined)).toBeUndefined();
});

test('an empty POST makes an engine sleep; a refusal differs from no answer', async () => {
  const told: string[] = [];
  const address = await serve(({ method, url, headers }, response) => {
    told.push(`${method} ${url} ${headers['content-length']}`);
    response.writeHead(told.length === 1 ? 200 : 404).end();
  });
  expect(await tell(address)).toEqual({ passed: true, isRefusal: false, detail: '/sleep?level=1 answered 200' });
  expect(await tell(address)).toEqual({ passed: false, isRefusal: true, detail: '/sleep?level=1 answered 404' });
  expect(told).toEqual(['POST /sleep?level=1 0', 'POST /sleep?level=1 0']);
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
  expect(await tell(address)).toMatchObject({ passed: false, isRefusal: false });
});
