import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../shared/clock.ts';
import { measureReplica } from './metrics-request.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function measure(answer: RequestListener): ReturnType<typeof measureReplica> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('not listening');
  return measureReplica({ kind: 'tcp', host: '127.0.0.1', port: address.port }, '/metrics', systemClock, new AbortController().signal);
}

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
