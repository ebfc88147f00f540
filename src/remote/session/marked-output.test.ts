import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MarkedOutput } from './marked-output.ts';
import { endMark, startMark } from './session-script.ts';

const token = 'svc-0123';

function read(chunks: readonly Buffer[]): { readonly text: string; readonly output: MarkedOutput } {
  const bytes: Buffer[] = [];
  const output = new MarkedOutput(token, (chunk) => bytes.push(Buffer.from(chunk)));
  for (const chunk of chunks) output.push(chunk);
  return { text: Buffer.concat(bytes).toString('latin1'), output };
}

test('however the bytes are cut, the command’s are found between the marks, with its exit code', () => {
  // Pieces of the token itself among the output are what could be taken for a mark.
  const piece = fc.oneof(fc.string({ maxLength: 9 }), fc.constantFrom('svc-', 'svc-012', 'svc-0123', 's', '=', ';\n'));
  fc.assert(
    fc.property(fc.array(piece), fc.nat(255), fc.array(fc.nat(400)), (pieces, code, cuts) => {
      const said = Buffer.from(pieces.join(''), 'utf8').toString('latin1').replaceAll(`${token}=`, '');
      const all = Buffer.from(`welcome\n${startMark(token)}${said}${endMark(token)}${code};\nleft behind`, 'latin1');
      const places = [0, ...cuts.map((cut) => Math.min(cut, all.length)), all.length].toSorted((a, b) => a - b);
      const { text, output } = read(places.slice(1).map((end, index) => all.subarray(places[index], end)));
      expect([text, output.exitCode]).toEqual([said, code]);
    }),
  );
});

test('what comes before the start is not the command’s, and is all there is when it never starts', () => {
  const { text, output } = read([Buffer.from('Connection refused\n')]);
  expect([text, output.isStarted, output.foreign, output.exitCode]).toEqual(['', false, 'Connection refused\n', undefined]);
});

test('what the command said is given on at once, also when it has not ended', () => {
  expect(read([Buffer.from(`${startMark(token)}half a line`)]).text).toBe('half a line');
});

test('a shell that says more and more before the command is not kept in memory, and the start is still found', () => {
  const noise = Buffer.alloc(100_000, 'y\n');
  const chunks = Array.from({ length: 50 }, () => noise);
  expect(read(chunks).output.foreign.length).toBeLessThan(250_000);
  const start = Buffer.from(startMark(token), 'latin1');
  const { text, output } = read([...chunks, start.subarray(0, 3), start.subarray(3), Buffer.from('hello', 'latin1')]);
  expect([output.isStarted, text]).toEqual([true, 'hello']);
});

test('a shell that is not ours and says more and more after the end is not read as an exit code, nor kept until there is one', () => {
  const start = Buffer.from(`${startMark(token)}hello${endMark(token)}`);
  const { text, output } = read([start, ...Array.from({ length: 50 }, () => Buffer.alloc(1_000, '1')), Buffer.from(';\n')]);
  expect([text, output.exitCode]).toEqual(['hello', undefined]);
});
