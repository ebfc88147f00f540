import { writeFileSync } from 'node:fs';
import { withSvc } from '../../test/support/e2e.ts';
import { openLoad, outcomes, type LoadResult } from '../../test/support/load.ts';

// Updates two replicas on this machine under load with long streams, in every mode, and counts what is lost. Writes
// RESULTS.md beside it. `node bench/updates/run.ts [seconds of a stream]`
const streamSeconds = Number(process.argv[2] ?? 60);
const requestsPerSecond = 200;
/** One request in this many is a stream. */
const requestsPerStream = 10;
const replicas = 2;

const server = `const { createServer } = require('node:http');
const version = process.argv[2];
createServer((request, response) => {
  if (request.url !== '/stream') return response.end(version);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let events = 0;
  const send = () => (events++ < ${streamSeconds} ? response.write('data: ' + version + '\\n\\n') : (clearInterval(timer), response.end()));
  const timer = setInterval(send, 1000);
  response.on('close', () => clearInterval(timer));
  send();
}).listen(process.env.SVC_REPLICA_PORT);
`;

const lines: string[] = [];
const print = (line: string): void => {
  lines.push(line);
  process.stdout.write(`${line}\n`);
};

const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((all, count) => all + count, 0);

/** Cells: sent, answered with 200, failed, broken off after the head. */
const cells = (result: LoadResult): string => {
  const answered = result.statuses[200] ?? 0;
  const cut = sum(result.failedAfter);
  return [result.sent, answered, result.sent - answered - cut, cut].join(' | ');
};

print('# Updates under load: lost requests\n');
print(
  `Written by \`node bench/updates/run.ts ${streamSeconds}\`. ${replicas} replicas on this machine, ${requestsPerSecond} requests/s; each`,
);
print(`${requestsPerStream}th is a stream of ${streamSeconds} s. Took: until --wait returned; old replicas drain after it.\n`);
print('| update | took | requests | answered | failed | cut | streams | complete | failed | cut |');
print('|---|---|---|---|---|---|---|---|---|---|');

await withSvc(async (svc) => {
  const fileOf = (version: string): string => {
    svc.file('web/server.cjs', server);
    const service = `{readiness_probe: /, replicas: ${replicas}, graceful_termination: ${2 * streamSeconds + 30}}`;
    const resources = '{infra: local, ports: 8080}';
    return svc.file('web/service.yaml', `service: ${service}\nresources: ${resources}\nworkdir: .\nrun: exec node server.cjs ${version}\n`);
  };
  await svc.ok(['serve', 'up', fileOf('one'), '-n', 'web']);
  const { endpoint } = await svc.ready('web', replicas);
  const updates: readonly (readonly [string, readonly string[]])[] = [
    ['rolling', ['update', 'web', '--mode', 'rolling']],
    ['blue_green', ['update', 'web', '--mode', 'blue_green', '--bake', '5s']],
    ['canary 25,50', ['update', 'web', '--mode', 'canary', '--steps', '25,50', '--bake', '5s']],
    ['rollback', ['rollback', 'web']],
  ];
  for (const [name, [command = '', service = '', ...flags]] of updates) {
    const short = openLoad({ url: endpoint }, requestsPerSecond * (1 - 1 / requestsPerStream));
    const url = `${endpoint}/stream`;
    const streams = openLoad({ url, timeoutMs: (2 * streamSeconds + 60) * 1_000 }, requestsPerSecond / requestsPerStream);
    const startedAt = performance.now();
    const file = command === 'update' ? [fileOf(name.replaceAll(/\W/g, '-'))] : [];
    await svc.ok(['serve', command, service, ...file, ...flags, '--yes', '--wait'], { timeoutMs: 600_000 });
    const took = Math.round((performance.now() - startedAt) / 1_000);
    const [ofShort, ofStreams] = await Promise.all([short.stop(), streams.stop()]);
    print(`| ${name} | ${took} s | ${cells(ofShort)} | ${cells(ofStreams)} |`);
    process.stderr.write(`${JSON.stringify([outcomes(ofShort), outcomes(ofStreams)])}\n`);
  }
  await svc.end();
});
writeFileSync(new URL('RESULTS.md', import.meta.url), `${lines.join('\n')}\n`);
