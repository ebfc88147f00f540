import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { whyNoKubernetes } from './needs.ts';

const run = promisify(execFile);

/** What clusters are made from. */
export interface PreparedTestbed {
  /** Folder of Kubernetes' programs. */
  readonly bin: string;
  /** Folder of what nodes' disks begin with; undefined for who can have no nodes. */
  readonly images: string | undefined;
}

let prepared: Promise<PreparedTestbed> | undefined;

/** Builds what is not there yet: minutes for the first time, nothing afterwards. */
export function prepareTestbed(): Promise<PreparedTestbed> {
  prepared ??= prepare();
  return prepared;
}

async function prepare(): Promise<PreparedTestbed> {
  const [bin, images] = await Promise.all([
    // Who has it from elsewhere need not build it.
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
