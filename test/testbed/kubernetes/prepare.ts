import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { whyNoKubernetes } from './needs.ts';

const run = promisify(execFile);

/** Build results that clusters need. */
export interface PreparedTestbed {
  /** Folder of Kubernetes' programs. */
  readonly bin: string;
  /** Folder of the initial content of nodes' disks; undefined for a user who cannot run nodes. */
  readonly images: string | undefined;
}

let prepared: Promise<PreparedTestbed> | undefined;

/** Builds what is missing: minutes for the first time, nothing afterwards. */
export function prepareTestbed(): Promise<PreparedTestbed> {
  prepared ??= prepare();
  return prepared;
}

async function prepare(): Promise<PreparedTestbed> {
  const [bin, images] = await Promise.all([
    // A user with other binaries need not build them.
    process.env['SVC_TESTBED_BIN'] ?? made('build.sh'),
    process.getuid?.() === 0 && whyNoKubernetes('nodes') === undefined ? made('images.sh') : undefined,
  ]);
  return { bin, images };
}

async function made(script: string): Promise<string> {
  const { stdout } = await run(new URL(script, import.meta.url).pathname, [], {
    env: { ...process.env, SVC_TESTBED_NODE: process.execPath },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout.trim();
}

/** vitest calls this once, before any test of the project. */
export async function setup(): Promise<void> {
  if (whyNoKubernetes('api') === undefined) await prepareTestbed();
}
