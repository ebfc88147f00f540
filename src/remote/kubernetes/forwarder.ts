import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { openKubeApi } from '../../kubernetes/contexts.ts';
import type { KubeApi } from '../../kubernetes/kube-api.ts';
import { writeFileAtomic } from '../../shared/system/files.ts';
import { systemClock } from '../../shared/clock.ts';
import { svcHome } from '../../shared/env.ts';
import { messageOf } from '../../shared/errors.ts';
import { noFence } from '../../shared/fence.ts';
import { createLogger } from '../../shared/log.ts';
import { homePaths } from '../../shared/paths.ts';
import { identifyProcess } from '../../shared/system/process-identity.ts';
import { systemRandom } from '../../shared/random.ts';
import { claimSocket } from '../../shared/system/claim-socket.ts';
import { forwarderFiles } from './forwarder-files.ts';
import { ForwardedTunnels, inodeOf } from './forwarder-server.ts';

// One detached process per Kubernetes cluster and home: `forwarder.ts CONTEXT` with SVC_HOME. It carries connections
// and decides nothing, so it needs no leader lease. A request on its control socket is one line: the name of a pod's
// record, or empty as a keepalive.

/** It ends after this time without connections and requests, ms. The next client starts it again. */
const idleMs = 3_600_000;

/** The same limit without tunnels, ms. */
const unusedMs = 10_000;

/** Interval of checks for removed pods, ms. Each checks a few pods: at most two requests a second. */
const goneMs = 5_000;

const checkIntervalMs = 1_000;

const [, , context = ''] = process.argv;
const paths = homePaths(svcHome(), process.getuid?.() ?? 0);
const files = forwarderFiles(paths, context);
const log = createLogger('forwarder');
let api: KubeApi | undefined;
const tunnels = new ForwardedTunnels({
  records: files.records,
  // Opened on first use: the context may be missing from the kubeconfig for a while.
  api: async () => (api ??= openKubeApi(context, { fence: noFence, clock: systemClock, random: systemRandom })),
  clock: systemClock,
  onFailure: ({ to }, message) => log.warn({ to }, `a tunnel failed: ${message}`),
});

process.umask(0o077);
await main();

async function main(): Promise<void> {
  // A home that was removed meanwhile must not be created again.
  if (!existsSync(files.records.dir)) return;
  const ready = Promise.withResolvers<void>();
  let isEnding = false;
  const control = await listen((socket) => {
    socket.on('error', () => undefined);
    createInterface(socket).on('line', (line) => {
      void ready.promise
        .then(() => answer(line))
        .then((said) => {
          // An ending forwarder's tunnel is useless. Without an answer the client retries until the next one answers.
          if (isEnding) return socket.destroy();
          return socket.write(`${said}\n`, () => tunnels.count === 0 && void end('there are no tunnels'));
        });
    });
  });
  if (control === undefined) return;
  const { server, inode } = control;
  writeFileAtomic(files.identity, JSON.stringify(identifyProcess(process.pid)));
  await tunnels.syncAll();
  log.info({ context, tunnels: tunnels.count }, 'forwarding');
  const stopChecks = systemClock.every(checkIntervalMs, () => {
    if (inodeOf(files.control) !== inode || tunnels.idleMs > (tunnels.count === 0 ? unusedMs : idleMs)) void end('no client needs it');
  });
  // The next check retries when the Kubernetes cluster does not answer.
  const stopPodChecks = systemClock.every(goneMs, () => void tunnels.removeGone().catch(() => undefined));
  async function end(why: string): Promise<void> {
    if (isEnding) return;
    isEnding = true;
    stopChecks();
    stopPodChecks();
    log.info(`ends: ${why}`);
    await tunnels.close();
    // After the sockets are closed: the next forwarder may start now, with files of the same names.
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
    tunnels.touch();
    if (line !== '') await tunnels.sync(line);
    return 'ok';
  } catch (error) {
    return messageOf(error).replaceAll('\n', ' ');
  }
}

/** Undefined when another process already is the forwarder. */
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
