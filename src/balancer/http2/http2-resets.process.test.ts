import { constants } from 'node:http2';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { field, Flag, frame, FrameClient, FrameType, requestFields, word } from '../../../test/support/http2-frames.ts';
import { httpReplica, withReplicas } from '../../../test/support/raw-http.ts';
import { withTlsBalancer } from '../../../test/support/tls-files.ts';
import { waitFor } from '../../../test/support/wait-for.ts';

const head = (stream: number, flags: number, method = 'GET'): Buffer =>
  frame(FrameType.headers, Flag.endHeaders | flags, stream, requestFields('/', method));

test.each([
  ['an error code', constants.NGHTTP2_CANCEL],
  ['no error code', constants.NGHTTP2_NO_ERROR],
])('streams that are reset in the same read, with %s, connect to no replica', async (_, code) => {
  await withReplicas([httpReplica((_request, response) => response.end('ok'))], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer) => {
      const client = new FrameClient(balancer.port);
      try {
        const reset = (stream: number): Buffer => frame(FrameType.rstStream, 0, stream, word(code));
        const streams = Array.from({ length: 20 }, (_stream, index) => 4 * index + 1);
        client.send(
          ...streams.flatMap((stream) => [
            head(stream, Flag.endStream),
            reset(stream),
            head(stream + 2, 0, 'POST'),
            frame(FrameType.data, Flag.endStream, stream + 2, Buffer.from('hi')),
            reset(stream + 2),
          ]),
        );
        client.send(head(101, Flag.endStream));
        await waitFor('the response', () => client.of(FrameType.data).some(({ stream }) => stream === 101));
        await balancer.link.idle();
        expect(replica?.accepted()).toBe(1);
        expect(client.goaway).toBeUndefined();
      } finally {
        client.destroy();
      }
      expect(balancer.output).not.toContain('Unexpected error');
    });
  });
});

const end = Flag.endHeaders | Flag.endStream;

test.each([
  [
    'trailers',
    [frame(FrameType.data, 0, 1, Buffer.from('hi')), frame(FrameType.headers, end, 1, field('x-sum', '7'))],
    'hi',
    ['x-sum', '7'],
  ],
  ['trailers without a body', [frame(FrameType.headers, end, 1, field('x-sum', '7'))], '', ['x-sum', '7']],
  ['an empty last frame', [frame(FrameType.data, Flag.endStream, 1, Buffer.alloc(0))], '', []],
  ['a body', [frame(FrameType.data, Flag.endStream, 1, Buffer.from('hi'))], 'hi', []],
])('%s in the same read as the head reach the replica', async (_, frames, body, trailers) => {
  const echo = httpReplica((request, response) => {
    void text(request).then((read) => response.end(JSON.stringify([read, request.rawTrailers])));
  });
  await withReplicas([echo], async (replica) => {
    await withTlsBalancer([replica?.port ?? 0], async (balancer) => {
      const client = new FrameClient(balancer.port);
      try {
        client.send(head(1, 0, 'POST'), ...frames);
        const reply = await waitFor('the response', () => client.of(FrameType.data)[0]?.payload.toString());
        expect(JSON.parse(reply)).toEqual([body, trailers]);
      } finally {
        client.destroy();
      }
    });
  });
});
