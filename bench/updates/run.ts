import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { withSvc, type Svc } from '../../test/support/e2e.ts';
import { openLoad, outcomes, type LoadResult } from '../../test/support/load.ts';
import { waitFor } from '../../test/support/wait-for.ts';

// Updates a running service in each mode, and rolls it back, under short requests and long streams. Counts what is lost.
// Writes RESULTS.md beside it. `node bench/updates/run.ts`: about six minutes.
const shortPerSecond = 180;
const streamsPerSecond = 20;
const streamSeconds = 60;
const replicas = 2;

const server = `const { createServer } = require('node:http');
createServer((request, response) => {
  if (request.url !== '/stream') return response.end('ok');
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let count = 0;
  const timer = setInterval(() => {
    response.write('data: ' + process.argv[2] + '\\n\\n');
    if (++count === ${streamSeconds}) response.end();
  }, 1_000);
  response.on('close', () => clearInterval(timer));
}).listen(8080);
`;

function serviceFile(svc: Svc, version: string): string {
  svc.file('web/server.cjs', server);
  const service = `service:\n  readiness_probe: /\n  replicas: ${replicas}\n  graceful_termination: ${2 * streamSeconds}\n`;
  return svc.file(
    'web/service.yaml',
    `${service}resources: {infra: local, ports: 8080}\nworkdir: .\nrun: exec node server.cjs ${version}\n`,
  );
}

const steps: readonly (readonly [name: string, command: (svc: Svc) => readonly string[]])[] = [
  ['rolling', (svc) => ['update', 'web', serviceFile(svc, 'two')]],
  ['canary 25, 50 %', (svc) => ['update', 'web', serviceFile(svc, 'three'), '--mode', 'canary', '--steps', '25,50', '--bake', '10s']],
  ['blue-green', (svc) => ['update', 'web', serviceFile(svc, 'four'), '--mode', 'blue-green', '--bake', '10s']],
  ['rollback', () => ['rollback', 'web']],
];

const lines: string[] = [];
const print = (line: string): void => {
  lines.push(line);
  process.stdout.write(`${line}\n`);
};

const text = (result: LoadResult): string =>
  Object.entries(outcomes(result))
    .map(([outcome, count]) => `${outcome === '200' ? 'complete' : outcome}: ${count}`)
    .join(', ');

await withSvc(async (svc) => {
  await svc.ok(['serve', 'up', serviceFile(svc, 'one'), '-n', 'web']);
  const { endpoint } = await svc.ready('web', replicas);
  print('# Updates under load\n');
  print(`Written by \`node bench/updates/run.ts\`. ${replicas} replicas on one machine with ${cpus().length} processors, which also sends`);
  print(`the load: ${shortPerSecond} short requests and ${streamsPerSecond} streams of ${streamSeconds} s begin each second, all through.`);
  print('An update ends when the replicas of the former version are gone, so after their last stream.\n');
  print('| update | seconds | short requests | streams | load |\n|---|---|---|---|---|');
  for (const [name, command] of steps) {
    const short = openLoad({ url: endpoint }, shortPerSecond);
    const streams = openLoad({ url: `${endpoint}/stream`, timeoutMs: 4_000 * streamSeconds }, streamsPerSecond);
    await waitFor('streams to be open', () => streams.current().sent > 5 * streamsPerSecond);
    const before = (await svc.service('web')).replicas.filter(({ endedAt }) => endedAt === null).map(({ id }) => id);
    const startedAt = performance.now();
    await svc.ok(['serve', ...command(svc), '--yes', '--wait'], { timeoutMs: 900_000 });
    const areGone = async (): Promise<boolean> =>
      (await svc.service('web')).replicas.every(({ id, endedAt }) => endedAt !== null || !before.includes(id));
    await waitFor('the former replicas to be gone', areGone, { timeoutMs: 900_000, everyMs: 500 });
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const [shortResult, streamResult] = await Promise.all([short.stop(), streams.stop()]);
    print(`| ${name} | ${seconds} | ${text(shortResult)} | ${text(streamResult)} | ${loadavg()[0]?.toFixed(1)} |`);
  }
  await svc.end();
});
writeFileSync(join(import.meta.dirname, 'RESULTS.md'), `${lines.join('\n')}\n`);
