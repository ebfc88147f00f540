import { mkdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import { endSshConnections, SshRemote } from '../../src/remote/ssh/index.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { dialReplica } from '../../src/shared/system/dial.ts';
import { homePaths } from '../../src/shared/paths.ts';
import type { ReplicaAddress } from '../../src/shared/replica-address.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { waitFor } from '../../test/support/wait-for.ts';
import { withTestSshHosts, type TestSshHost } from '../../test/testbed/hosts/test-hosts.ts';

// Compares an SSH forward with a direct connection in one run, as root: `node bench/ssh-forward/run.ts`. RESULTS.md has
// the output of one run.

const port = 8080;
const streamBytes = 128 * 1_048_576;
const roundTrips = 400;
const connections = 60;
/** Measurements alternate between forward and direct connection, so a busy moment of the machine affects both. */
const turns = 5;

const server = `require('node:net').createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    if (bytes[0] !== 115) return socket.write(bytes);
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
    // `dialReplica` returns a paused socket.
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

async function compare(title: string, sshHost: TestSshHost, isFar: boolean): Promise<void> {
  await withTempHome(async (home) => {
    const paths = homePaths(home, process.getuid?.() ?? 0);
    mkdirSync(paths.runtimeDir, { recursive: true, mode: 0o700 });
    const open = (direct: 'always' | 'never'): SshRemote =>
      new SshRemote({
        target: () => Promise.resolve(sshHost.target()),
        baseDir: '/home/ubuntu',
        enter: [],
        environment: {},
        address: { direct },
        paths,
        clock: systemClock,
      });
    try {
      await open('never').exec(['/usr/local/bin/node', '-e', server], { detached: true });
      const addresses = await Promise.all((['always', 'never'] as const).map((direct) => open(direct).address(port)));
      await waitFor('the server', () =>
        Promise.all(addresses.map(async (address) => answerTo(await dialReplica(address, { timeoutMs: 10_000 }), 'p'))).then(
          () => true,
          () => undefined,
        ),
      );
      const figures = addresses.map((): Figures => ({ roundTripMs: [], firstByteMs: [], mebibytesPerSecond: [] }));
      for (let turn = 0; turn < turns; turn += 1) {
        for (const [index, address] of addresses.entries()) {
          const own = figures[index];
          if (own !== undefined) await measure(address, own, isFar);
        }
      }
      report(title, figures);
    } finally {
      await endSshConnections(sshHost.target(), paths, systemClock);
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

await withTestSshHosts(async (sshHosts) => {
  console.log('| machine | figure | direct | forward | ratio | added |');
  console.log('|---|---|---:|---:|---:|---:|');
  await compare('near', await sshHosts.up('near', { node: process.execPath }), false);
  await compare('70 ms away, 200 Mbit/s', await sshHosts.up('far', { node: process.execPath, delayMs: 35, rateMbit: 200 }), true);
});
process.exit();
