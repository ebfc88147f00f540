import { constants } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withBalancer, type RunningBalancer } from '../../../test/support/balancer.ts';
import { field, Flag, frame, FrameClient, FrameType, indexed, requestFields, setting, word } from '../../../test/support/http2-frames.ts';
import { withHttp2 } from '../../../test/support/http2.ts';
import { httpReplica, withReplicas } from '../../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

const mebibyte = 1_048_576;

/** Runs an attack beside honest requests on another connection; afterwards nothing of it may be left. */
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

/** Ours, and nghttp2's; none when the connection broke before it was read. */
const refusals: readonly (number | undefined)[] = [undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_INTERNAL_ERROR];

/** Far more than is needed to be noticed. */
const many = 2_000_000;

test('a client that opens streams and resets them at once, again and again, is sent away (CVE-2023-44487)', async () => {
  await expectUnharmedBy(async (client) => {
    for (let stream = 1; stream < 40_000 && !client.isClosed; stream += 2) {
      const flags = Flag.endHeaders | Flag.endStream;
      client.send(frame(FrameType.headers, flags, stream, requestFields('/hang')), frame(FrameType.rstStream, 0, stream, word(8)));
      if (stream % 101 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await client.closed();
    // A client that goes on sending may lose the GOAWAY to the reset that follows it.
    expect(refusals).toContain(client.goaway);
  });
});

test('a head that never ends is sent away (CVE-2024-27316)', async () => {
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
] as const)('%s in masses are sent away', async (_, bytes) => {
  await expectUnharmedBy(async (client) => {
    await client.flood(Buffer.concat(Array.from({ length: 50 }, () => bytes)), many / 50);
    await client.closed();
    expect(refusals).toContain(client.goaway);
  });
});

test('without TLS it is no different', async () => {
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

test('empty DATA frames in masses are sent away', async () => {
  await expectUnharmedBy(async (client) => {
    client.send(frame(FrameType.headers, Flag.endHeaders, 1, requestFields('/', 'POST')));
    await client.flood(Buffer.concat(Array.from({ length: 50 }, () => frame(FrameType.data, 0, 1))), many / 50);
    await client.closed();
    expect(refusals).toContain(client.goaway);
  });
});

test('a small head that unpacks into a huge one is refused, and its repetition sent away', async () => {
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

test('a client that asks for much and takes nothing costs little memory', async () => {
  const big = httpReplica((_, response) => response.end(Buffer.alloc(20 * mebibyte)));
  await withReplicas([big], async (replica) => {
    await withTlsBalancer(
      [replica?.port ?? 0],
      async (balancer) => {
        const client = new FrameClient(balancer.port);
        try {
          await waitFor('the greeting', () => client.of(FrameType.settings).length > 0);
          const before = balancer.memory();
          // No window for any stream.
          client.send(frame(FrameType.settings, 0, 0, setting(4, 0)));
          for (let stream = 1; stream < 400; stream += 2) {
            client.send(frame(FrameType.headers, Flag.endHeaders | Flag.endStream, stream, requestFields()));
          }
          await waitFor('the heads', () => client.of(FrameType.headers).length === 200);
          expect(balancer.memory() - before).toBeLessThan(100 * mebibyte);
          // Nobody waits for it for ever.
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

test('what is malformed by the rules of HTTP/2 ends its stream or its connection', async () => {
  const malformed = [
    ['a connection field', [requestFields(), field('connection', 'keep-alive')]],
    ['a coding', [requestFields(), field('transfer-encoding', 'chunked')]],
    ['te other than trailers', [requestFields(), field('te', 'gzip')]],
    ['capitals in a name', [requestFields(), field('X-Big', '1')]],
    ['a path twice', [requestFields(), field(':path', '/')]],
    ['no path', [field(':method', 'GET'), field(':scheme', 'https'), field(':authority', 'a')]],
    ['a body that is longer than it says', [requestFields('/', 'POST'), field('content-length', '3')]],
    ['a length without a body', [requestFields('/', 'GET'), field('content-length', '3')]],
    ['a pseudo-field after the others', [field(':method', 'GET'), field('x-a', '1'), field(':scheme', 'https'), field(':path', '/')]],
    ['an unknown pseudo-field', [requestFields(), field(':what', '1')]],
  ] as const;
  await expectUnharmedBy(async (first, { port }) => {
    first.destroy();
    for (const [what, fields] of malformed) {
      const client = new FrameClient(port);
      const hasBody = what.startsWith('a body');
      client.send(frame(FrameType.headers, Flag.endHeaders | (hasBody ? 0 : Flag.endStream), 1, Buffer.concat(fields)));
      if (hasBody) client.send(frame(FrameType.data, Flag.endStream, 1, Buffer.from('hello')));
      await waitFor(`the end of ${what}`, () => client.isClosed || client.of(FrameType.rstStream).length > 0);
      expect(client.of(FrameType.headers)).toEqual([]);
      client.destroy();
    }
  });
});

test('uploads that wait for their replica are no flood when the client takes them back', async () => {
  const busy = httpReplica((request, response) => {
    if (request.method === 'GET') response.end('honest');
  });
  await withReplicas([busy], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer, url) => {
      // The client counts what it could not send yet as memory of its own, MiB.
      const options = { rejectUnauthorized: false, maxSessionMemory: 100 };
      await withHttp2(
        url,
        async (client) => {
          const calls = Array.from({ length: 4 }, () => client.call({ ':path': '/', ':method': 'POST' }));
          for (const { stream } of calls) stream.end(Buffer.alloc(8 * mebibyte));
          // Until as much has come as the replica's connection and ours hold, and has been looked at.
          await sleep(1_500);
          for (const { stream } of calls) stream.close(constants.NGHTTP2_CANCEL);
          expect((await client.get('/')).body.toString()).toBe('honest');
          await balancer.link.idle();
          // Longer than from one look to the next.
          await sleep(1_000);
          expect((await client.get('/')).body.toString()).toBe('honest');
          expect(client.goaways).toEqual([]);
        },
        options,
      );
    });
  });
});
