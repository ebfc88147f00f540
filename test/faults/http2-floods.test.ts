import { constants } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withBalancer, type RunningBalancer } from '../support/balancer.ts';
import { field, Flag, frame, FrameClient, FrameType, indexed, requestFields, setting, word } from '../support/http2-frames.ts';
import { withHttp2 } from '../support/http2.ts';
import { httpReplica, withReplicas } from '../support/raw-http.ts';
import { withTlsBalancer } from '../support/tls-files.ts';
import { waitFor } from '../support/wait-for.ts';

const mebibyte = 1_048_576;

/** Runs an attack while another connection sends honest requests; afterwards nothing of it may remain. */
async function expectUnharmedBy(attack: (client: FrameClient, balancer: RunningBalancer) => Promise<void>): Promise<void> {
  const replica = httpReplica((request, response) => {
    if (request.url !== '/hang') response.end('honest');
  });
  await withReplicas([replica], async (honest) => {
    await withTlsBalancer([honest?.port ?? 0], async (balancer, url) => {
      await withHttp2(url, async (honestClient) => {
        expect((await honestClient.get('/')).body.toString()).toBe('honest');
        const before = balancer.memory();
        const client = new FrameClient(balancer.port);
        try {
          await waitFor('the greeting', () => client.of(FrameType.settings).length > 0);
          const over = new AbortController();
          let served = 0;
          const attacking = attack(client, balancer).finally(() => {
            over.abort();
          });
          const askHonestly = async (): Promise<void> => {
            while (!over.signal.aborted) {
              expect((await honestClient.get('/')).body.toString()).toBe('honest');
              served += 1;
            }
          };
          await Promise.all([attacking, askHonestly()]);
          expect(served).toBeGreaterThan(0);
          expect(balancer.memory() - before).toBeLessThan(100 * mebibyte);
          expect((await honestClient.get('/')).body.toString()).toBe('honest');
        } finally {
          client.destroy();
        }
      });
      await balancer.link.idle();
      expect(balancer.output).not.toContain('Unexpected error');
    });
  });
}

/** GOAWAY codes of svc and of nghttp2; none when the connection broke before the client read one. */
const refusals: readonly (number | undefined)[] = [undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_INTERNAL_ERROR];

/** Far above every detection threshold. */
const many = 2_000_000;

test('a client that repeatedly opens and resets streams gets GOAWAY (CVE-2023-44487)', async () => {
  await expectUnharmedBy(async (client) => {
    for (let stream = 1; stream < 40_000 && !client.isClosed; stream += 2) {
      const flags = Flag.endHeaders | Flag.endStream;
      client.send(frame(FrameType.headers, flags, stream, requestFields('/hang')), frame(FrameType.rstStream, 0, stream, word(8)));
      if (stream % 101 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await client.closed();
    // A client that keeps sending may lose the GOAWAY to the reset that follows it.
    expect(refusals).toContain(client.goaway);
  });
});

test.each([
  ['a head that breaks a rule', Flag.endStream, Buffer.concat([requestFields('/hang'), field('X-Big', '1')]), Buffer.alloc(0)],
  ['trailers that do not end the stream', 0, requestFields('/hang', 'POST'), field('x-sum', '1')],
])('a client that makes the balancer reset streams by %s gets GOAWAY (CVE-2025-8671)', async (_, flags, head, trailers) => {
  await expectUnharmedBy(async (client) => {
    for (let stream = 1; stream < 40_000 && !client.isClosed; stream += 2) {
      client.send(frame(FrameType.headers, Flag.endHeaders | flags, stream, head));
      // In a read of its own, so that the request begins before.
      await new Promise((resolve) => setImmediate(resolve));
      if (flags === 0) client.send(frame(FrameType.headers, Flag.endHeaders, stream, trailers));
    }
    await client.closed();
    expect(refusals).toContain(client.goaway);
  });
});

test('a head that never ends gets GOAWAY (CVE-2024-27316)', async () => {
  await expectUnharmedBy(async (client) => {
    client.send(frame(FrameType.headers, 0, 1, requestFields()));
    await client.flood(frame(FrameType.continuation, 0, 1, field('x-more', 'a'.repeat(1_000))), many);
    await client.closed();
  });
});

test.each([
  ['PING frames', frame(FrameType.ping, 0, 0, Buffer.alloc(8))],
  ['SETTINGS frames', frame(FrameType.settings, 0, 0, setting(4, 65_535))],
  ['empty SETTINGS frames', frame(FrameType.settings, 0, 0)],
  ['PRIORITY frames', frame(FrameType.priority, 0, 7, Buffer.concat([word(0), Buffer.from([1])]))],
  ['WINDOW_UPDATE frames', frame(FrameType.windowUpdate, 0, 0, word(1))],
  ['frames of unknown types', frame(0xee, 0, 0, Buffer.alloc(10))],
] as const)('a flood of %s gets GOAWAY', async (_, bytes) => {
  await expectUnharmedBy(async (client) => {
    await client.flood(Buffer.concat(Array.from({ length: 50 }, () => bytes)), many / 50);
    await client.closed();
    expect(refusals).toContain(client.goaway);
  });
});

test('without TLS the limits are the same', async () => {
  await withBalancer(
    [],
    async (balancer) => {
      const client = new FrameClient(balancer.port, false);
      await client.flood(Buffer.concat(Array.from({ length: 50 }, () => frame(FrameType.windowUpdate, 0, 0, word(1)))), many / 50);
      await client.closed();
      expect(refusals).toContain(client.goaway);
    },
    { protocol: 'h2c' },
  );
});

test('a flood of empty DATA frames gets GOAWAY', async () => {
  await expectUnharmedBy(async (client) => {
    client.send(frame(FrameType.headers, Flag.endHeaders, 1, requestFields('/', 'POST')));
    await client.flood(Buffer.concat(Array.from({ length: 50 }, () => frame(FrameType.data, 0, 1))), many / 50);
    await client.closed();
    expect(refusals).toContain(client.goaway);
  });
});

test('a header bomb is refused, and its repetition gets GOAWAY', async () => {
  await expectUnharmedBy(async (client) => {
    const learn = Buffer.concat([requestFields('/first'), field('x-bomb', 'a'.repeat(3_000), true)]);
    client.send(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, 1, learn));
    const bomb = Buffer.concat([requestFields(), ...Array.from({ length: 16_000 }, () => indexed(62))]);
    for (let stream = 3; stream < 4_000 && !client.isClosed; stream += 2) {
      await client.flood(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, stream, bomb), 1);
    }
    await client.closed();
  });
});

test('a client that requests much and reads nothing costs little memory', async () => {
  const big = httpReplica((_, response) => response.end(Buffer.alloc(20 * mebibyte)));
  await withReplicas([big], async (replica) => {
    await withTlsBalancer(
      [replica?.port ?? 0],
      async (balancer) => {
        const client = new FrameClient(balancer.port);
        try {
          await waitFor('the greeting', () => client.of(FrameType.settings).length > 0);
          const before = balancer.memory();
          // A window of zero for every stream.
          client.send(frame(FrameType.settings, 0, 0, setting(4, 0)));
          for (let stream = 1; stream < 400; stream += 2) {
            client.send(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, stream, requestFields()));
          }
          await waitFor('the heads', () => client.of(FrameType.headers).length === 200);
          expect(balancer.memory() - before).toBeLessThan(100 * mebibyte);
          // The balancer cuts the client eventually.
          await waitFor('the resets', () => client.of(FrameType.rstStream).length === 200);
          await balancer.link.idle();
        } finally {
          client.destroy();
        }
      },
      { idleTimeoutMs: 1_500 },
    );
  });
});

test('cancelled uploads that wait for their replica do not count as a flood', async () => {
  const busy = httpReplica((request, response) => {
    if (request.method === 'GET') response.end('honest');
  });
  await withReplicas([busy], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer, url) => {
      // The client counts unsent data as its own memory, MiB.
      const options = { rejectUnauthorized: false, maxSessionMemory: 100 };
      await withHttp2(
        url,
        async (client) => {
          const calls = Array.from({ length: 4 }, () => client.call({ ':path': '/', ':method': 'POST' }));
          for (const { stream } of calls) stream.end(Buffer.alloc(8 * mebibyte));
          // Wait until both connections are full and the balancer has checked them.
          await sleep(1_500);
          for (const { stream } of calls) stream.close(constants.NGHTTP2_CANCEL);
          expect((await client.get('/')).body.toString()).toBe('honest');
          await balancer.link.idle();
          // Longer than the interval between two checks.
          await sleep(1_000);
          expect((await client.get('/')).body.toString()).toBe('honest');
          expect(client.goaways).toEqual([]);
        },
        options,
      );
    });
  });
});
