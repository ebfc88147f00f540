import { PassThrough, Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { mergeLogs } from './edge-proxy-reports.ts';

async function lines(merged: AsyncIterable<Buffer>): Promise<string[]> {
  let text = '';
  for await (const piece of merged) text += piece.toString('utf8');
  return text.split('\n').slice(0, -1);
}

test("lines split across chunks stay whole and carry their balancer's name", async () => {
  const first = Readable.from([Buffer.from('o'), Buffer.from('ne\ntw'), Buffer.from('o\nthree')]);
  const second = Readable.from([Buffer.from('uno\n')]);
  const merged = await lines(
    mergeLogs([
      { member: 'a', pieces: first },
      { member: 'b', pieces: second },
    ]),
  );
  expect(merged.filter((line) => line.startsWith('[a]'))).toEqual(['[a] one', '[a] two', '[a] three']);
  expect(merged.filter((line) => line.startsWith('[b]'))).toEqual(['[b] uno']);
});

test('a balancer that disconnects does not end the logs of the others', async () => {
  const broken = new PassThrough();
  broken.write('last words\n');
  const going = new PassThrough();
  const merged = lines(
    mergeLogs([
      { member: 'a', pieces: broken },
      { member: 'b', pieces: going },
    ]),
  );
  broken.destroy(new Error('connection reset'));
  going.end('still there\n');
  const all = await merged;
  expect(all).toContain('[a] (the log breaks off: this balancer does not answer any more)');
  expect(all).toContain('[b] still there');
});
