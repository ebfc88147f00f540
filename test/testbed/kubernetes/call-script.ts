import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { PreparedTestbed } from './prepare.ts';

const run = promisify(execFile);
const script = new URL('cluster.sh', import.meta.url).pathname;

/** Calls cluster.sh for the cluster with the folder `dir`; returns its output. */
export async function callScript(prepared: PreparedTestbed, args: readonly string[], dir?: string): Promise<string> {
  const { PATH, HOME, TMPDIR, SVC_TESTBED_CACHE } = process.env;
  const { stdout } = await run(script, args, {
    env: {
      PATH,
      HOME,
      ...(TMPDIR === undefined ? {} : { TMPDIR }),
      ...(SVC_TESTBED_CACHE === undefined ? {} : { SVC_TESTBED_CACHE }),
      SVC_TESTBED_BIN: prepared.bin,
      ...(prepared.images === undefined ? {} : { SVC_TESTBED_IMAGES: prepared.images }),
      ...(dir === undefined ? {} : { SVC_CLUSTER: dir }),
    },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** The address that only the control plane itself uses; cluster.sh defines the same. */
export function loopbackOf(number: string): string {
  return `127.${77 + ((process.getuid?.() ?? 0) % 100)}.${number}.1`;
}
