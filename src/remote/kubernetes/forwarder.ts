import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { openKubeApi } from '../../kubernetes/contexts.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { writeFileAtomic } from '../../shared/atomic-file.ts';
import { systemClock } from '../../shared/clock.ts';
import { svcHome } from '../../shared/env.ts';
import { messageOf } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import { createLogger } from '../../shared/log.ts';
import { homePaths } from '../../shared/paths.ts';
import { identifyProcess } from '../../shared/process-identity.ts';
import { systemRandom } from '../../shared/random.ts';
import { claimSocket } from '../../shared/claim-socket.ts';
import { ForwardedWays } from './forwarder-server.ts';
import { forwarderFiles } from './way-files.ts';

// One for each cluster and home, detached from whoever started it: `forwarder.ts CONTEXT` with SVC_HOME. It carries connections, and decides nothing, so
// that it needs no leave of a leader. Asked over its control socket: a line with the name of a pod's record, or an empty one to say that it is needed.

/** Nobody used it and nobody asked: it ends, and is started again when it is needed. */
const idleMs = 3_600_000;

/** The same where there are no ways at all. */
const unusedMs = 10_000;

/** How often the cluster is asked which of its pods are gone, ms: a few at a time, so that it is two requests a second at most. */
const goneMs = 5_000;

/** How often it is looked whether it is still wanted, ms. */
const lookMs = 1_000;

const [, , context = ''] = process.argv;
const paths = homePaths(svcHome(), process.getuid?.() ?? 0);
const files = forwarderFiles(paths, context);
const log = createLogger('forwarder');
let api: KubeApi | undefined;
const ways = new ForwardedWays({
  files,
  // Not before it is needed: the context may be missing from the kubeconfig for a while.
  api: async () => (api ??= openKubeApi(context, { fence: noFence, clock: systemClock, random: systemRandom })),
  clock: systemClock,
  onFailure: ({ to }, message) => log.warn({ to }, `a way failed: ${message}`),
});

process.umask(0o077);
await main();

async function main(): Promise<void> {
  // Started for a home that has gone meanwhile: it must not come back by that.
  if (!existsSync(files.records)) return;
  const ready = Promise.withResolvers<void>();
  let isEnding = false;
  const control = await listen((socket) => {
    socket.on('error', () => undefined);
    createInterface(socket).on('line', (line) => {
      void ready.promise
        .then(() => answer(line))
        .then((said) => {
          // A way that ends with us is none: who asked goes on asking, until the next forwarder answers.
          if (isEnding) return socket.destroy();
          return socket.write(`${said}\n`, () => ways.count === 0 && void end('there are no ways'));
        });
    });
  });
  if (control === undefined) return;
  const { server, inode } = control;
  writeFileAtomic(files.identity, JSON.stringify(identifyProcess(process.pid)));
  await ways.syncAll();
  log.info({ context, ways: ways.count }, 'forwarding');
  const stopLooking = systemClock.every(lookMs, () => {
    if (inodeOf(files.control) !== inode || ways.idleMs > (ways.count === 0 ? unusedMs : idleMs)) void end('nobody needs it');
  });
  // A cluster that does not answer now says it the next time.
  const stopAsking = systemClock.every(goneMs, () => void ways.removeGone().catch(() => undefined));
  async function end(why: string): Promise<void> {
    if (isEnding) return;
    isEnding = true;
    stopLooking();
    stopAsking();
    log.info(`ends: ${why}`);
    await ways.close();
    // Not before: the next forwarder, which may begin from here on, listens on files of the same names.
    if (inodeOf(files.control) === inode) rmSync(files.control, { force: true });
    server.close();
    process.exit(0);
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(signal));
  process.on('SIGHUP', () => undefined);
  ready.resolve();
}

async function answer(line: string): Promise<string> {
  try {
    ways.touch();
    if (line !== '') await ways.sync(line);
    return 'ok';
  } catch (error) {
    return messageOf(error).replaceAll('\n', ' ');
  }
}

/** Undefined when another process is the forwarder already. */
async function listen(onConnection: (socket: Socket) => void): Promise<{ readonly server: Server; readonly inode: number } | undefined> {
  mkdirSync(files.socketDir, { recursive: true, mode: 0o700 });
  const own = `${files.control}.${process.pid}`;
  rmSync(own, { force: true });
  const server = createServer(onConnection);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path: own }, resolve);
  });
  try {
    if (await claimSocket(own, files.control)) return { server, inode: inodeOf(own) ?? 0 };
    server.close();
    return undefined;
  } finally {
    rmSync(own, { force: true });
  }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}
