import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { readMetrics } from './read-metrics.ts';

const never = new AbortController().signal;

test("metrics are read from the balancer's socket", async () => {
  await withTempHome(async (dir) => {
    const server = createServer((request, response) => response.writeHead(request.url === '/metrics' ? 200 : 404).end('one 1\n'));
    const path = join(dir, 'm.sock');
    await new Promise<void>((resolve) => server.listen(path, resolve));
    try {
      expect(await readMetrics('chat', path, never)).toBe('one 1\n');
    } finally {
      server.close();
    }
  });
});

test('a balancer that does not answer fails with a hint', async () => {
  await withTempHome(async (dir) => {
    await expect(readMetrics('chat', join(dir, 'none.sock'), never)).rejects.toMatchObject({
      code: 'SVC_ENDPOINT_DOWN',
      message: expect.stringContaining("The process that serves the endpoint of 'chat' does not answer:"),
      hint: 'Run: svc serve logs chat --load-balancer',
    });
  });
});
