import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MarkedOutput } from './session-outputs.ts';
import { endMark, startMark } from './session-script.ts';

const token = 'svc-0123';

function read(chunks: readonly Buffer[]): { readonly text: string; readonly output: MarkedOutput } {
  const bytes: Buffer[] = [];
  const output = new MarkedOutput(token, (chunk) => bytes.push(Buffer.from(chunk)));
  for (const chunk of chunks) output.push(chunk);
  return { text: Buffer.concat(bytes).toString('latin1'), output };
}

test('output between the marks and the exit code are found at any chunking', () => {
  // Only pieces of the token within the output could be mistaken for a mark.
  const piece = fc.oneof(fc.string({ maxLength: 9 }), fc.constantFrom('svc-', 'svc-012', 'svc-0123', 's', '=', ';\n'));
  // A command does not know the token of its session.
  const outputs = fc.array(piece).filter((pieces) => !pieces.join('').includes(endMark(token)));
  fc.assert(
    fc.property(outputs, fc.nat(255), fc.array(fc.nat(400)), (pieces, code, cuts) => {
      const said = Buffer.from(pieces.join(''), 'utf8').toString('latin1');
      const all = Buffer.from(`welcome\n${startMark(token)}${said}${endMark(token)}${code};\nleft behind`, 'latin1');
      const positions = [0, ...cuts.map((cut) => Math.min(cut, all.length)), all.length].toSorted((a, b) => a - b);
      const { text, output } = read(positions.slice(1).map((end, index) => all.subarray(positions[index], end)));
      expect([text, output.exitCode]).toEqual([said, code]);
    }),
  );
});

test('output before the start mark is foreign, also when no command starts', () => {
  const { text, output } = read([Buffer.from('Connection refused\n')]);
  expect([text, output.isStarted, output.foreign, output.exitCode]).toEqual(['', false, 'Connection refused\n', undefined]);
});

test('partial output of a running command is passed on immediately', () => {
  expect(read([Buffer.from(`${startMark(token)}half a line`)]).text).toBe('half a line');
});

test('endless output before the start mark is bounded, and the mark is found', () => {
  const noise = Buffer.alloc(100_000, 'y\n');
  const chunks = Array.from({ length: 50 }, () => noise);
  expect(read(chunks).output.foreign.length).toBeLessThan(250_000);
  const start = Buffer.from(startMark(token), 'latin1');
  const { text, output } = read([...chunks, start.subarray(0, 3), start.subarray(3), Buffer.from('hello', 'latin1')]);
  expect([output.isStarted, text]).toEqual([true, 'hello']);
});

test('digits from a foreign shell after the end mark are no exit code', () => {
  const start = Buffer.from(`${startMark(token)}hello${endMark(token)}`);
  const { text, output } = read([start, ...Array.from({ length: 50 }, () => Buffer.alloc(1_000, '1')), Buffer.from(';\n')]);
  expect([text, output.exitCode]).toEqual(['hello', undefined]);
});
