import { mkdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { endSshConnections, SshRemote } from '../../src/remote/ssh/index.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { dialReplica } from '../../src/shared/dial.ts';
import { homePaths } from '../../src/shared/paths.ts';
import type { ReplicaAddress } from '../../src/shared/replica-address.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { withTestHosts, type TestHost } from '../../test/testbed/hosts/test-hosts.ts';

// What a forward through SSH costs beside a direct connection, in one run: `node bench/ssh-forward/run.ts`, as root. RESULTS.md has a run of it.

const port = 8080;
const streamBytes = 128 * 1_048_576;
const roundTrips = 400;
const connections = 60;
/** The two ways take turns, so that a busy moment of the machine falls on both. */
const turns = 5;

const server = `require('node:net').createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', (asked) => {
    if (asked[0] !== 115) return socket.write(asked);
    const piece = Buffer.alloc(1 << 20);
    let left = ${streamBytes};
    const more = () => { while (left > 0) { left -= piece.length; if (!socket.write(piece)) return socket.once('drain', more); } socket.end(); };
    more();
  });
}).listen(${port}, '0.0.0.0')`;

interface Figures {
  readonly roundTripMs: number[];
  readonly firstByteMs: number[];
  readonly mebibytesPerSecond: number[];
}

function answerTo(socket: Socket, question: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('data', () => {
      socket.off('error', reject);
      resolve();
    });
    socket.write(question);
    // It comes paused.
    socket.resume();
  });
}

async function measure(address: ReplicaAddress, figures: Figures, isFar: boolean): Promise<void> {
  for (let index = 0; index < (isFar ? 5 : connections); index += 1) {
    const startedAt = performance.now();
    const socket = await dialReplica(address, { timeoutMs: 10_000 });
    await answerTo(socket, 'p');
    figures.firstByteMs.push(performance.now() - startedAt);
    socket.destroy();
  }
  const socket = await dialReplica(address, { timeoutMs: 10_000 });
  for (let index = 0; index < (isFar ? 20 : roundTrips); index += 1) {
    const startedAt = performance.now();
    await answerTo(socket, 'p');
    figures.roundTripMs.push(performance.now() - startedAt);
  }
  socket.destroy();
  const stream = await dialReplica(address, { timeoutMs: 10_000 });
  const startedAt = performance.now();
  let bytes = 0;
  await new Promise<void>((resolve, reject) => {
    stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
    stream.once('end', resolve);
    stream.once('error', reject);
    stream.write('s');
    stream.resume();
  });
  figures.mebibytesPerSecond.push(bytes / 1_048_576 / ((performance.now() - startedAt) / 1_000));
  stream.destroy();
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

async function compare(title: string, host: TestHost, isFar: boolean): Promise<void> {
  await withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    mkdirSync(paths.runtimeDir, { recursive: true, mode: 0o700 });
    const open = (direct: 'always' | 'never'): SshRemote =>
      new SshRemote({
        target: () => Promise.resolve(host.target()),
        baseDir: '/home/ubuntu',
        enter: [],
        environment: {},
        address: { direct },
        paths,
        clock: systemClock,
      });
    try {
      await open('never').exec(['/usr/local/bin/node', '-e', server], { detached: true });
      const ways = await Promise.all((['always', 'never'] as const).map((direct) => open(direct).address(port)));
      await waitFor('the server', () =>
        Promise.all(ways.map(async (address) => answerTo(await dialReplica(address, { timeoutMs: 10_000 }), 'p'))).then(
          () => true,
          () => undefined,
        ),
      );
      const figures = ways.map((): Figures => ({ roundTripMs: [], firstByteMs: [], mebibytesPerSecond: [] }));
      for (let turn = 0; turn < turns; turn += 1) {
        for (const [index, address] of ways.entries()) {
          const own = figures[index];
          if (own !== undefined) await measure(address, own, isFar);
        }
      }
      report(title, figures);
    } finally {
      await endSshConnections(host.target(), paths, systemClock);
    }
  });
}

function report(title: string, [direct, forward]: readonly Figures[]): void {
  if (direct === undefined || forward === undefined) return;
  const row = (name: string, of: (figures: Figures) => number, unit: string): void => {
    const [a, b] = [of(direct), of(forward)];
    const added = unit === 'ms' ? `+${(b - a).toFixed(2)} ms` : '';
    console.log(`| ${title} | ${name} | ${a.toFixed(2)} ${unit} | ${b.toFixed(2)} ${unit} | ${(b / a).toFixed(2)} | ${added} |`);
  };
  row('round trip, median', ({ roundTripMs }) => quantile(roundTripMs, 0.5), 'ms');
  row('round trip, p95', ({ roundTripMs }) => quantile(roundTripMs, 0.95), 'ms');
  row('new connection to first byte, median', ({ firstByteMs }) => quantile(firstByteMs, 0.5), 'ms');
  row('one stream, median', ({ mebibytesPerSecond }) => quantile(mebibytesPerSecond, 0.5), 'MiB/s');
}

await withTestHosts(async (hosts) => {
  console.log('| machine | figure | direct | forward | ratio | added |');
  console.log('|---|---|---:|---:|---:|---:|');
  await compare('near', await hosts.up('near', { node: process.execPath }), false);
  await compare('70 ms away, 200 Mbit/s', await hosts.up('far', { node: process.execPath, delayMs: 35, rateMbit: 200 }), true);
});
process.exit();
