import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../remote/run-command.ts';
import type { Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';
import { namesIn, removeStubborn } from '../../shared/system/remove-stubborn.ts';

/**
 * Removes a folder, except entries to keep. Unmounts file systems below it first and never deletes through a mount: the
 * files there are not svc's. Succeeds when the folder is already gone.
 */
export async function removeTree(dir: string, clock: Clock, keep: readonly string[] = []): Promise<void> {
  await unmountBelow(dir, clock);
  for (const name of await namesIn(dir)) if (!keep.includes(name)) await removeStubborn(join(dir, name));
  if (keep.length === 0) await rm(dir, { recursive: true, force: true });
}

async function unmountBelow(dir: string, clock: Clock): Promise<void> {
  const commands = [
    ['umount', '--lazy'],
    ['fusermount3', '-uz'],
    ['fusermount', '-uz'],
  ] as const;
  for (const command of commands) {
    // The newest first: one mount may lie on another.
    for (const mount of mountsBelow(dir).toReversed()) await runCommand([...command, mount], { env: wholeEnv(), clock });
    if (mountsBelow(dir).length === 0) return;
  }
  throw new SvcError('SVC_MACHINE_LOST', `A file system is mounted below ${dir} and cannot be unmounted: ${mountsBelow(dir).join(', ')}.`, {
    hint: 'Unmount it; the machine is then removed.',
  });
}

/** Mount points, oldest first (proc_pid_mountinfo(5): field 5, with octal escapes). */
export function mountsBelow(dir: string, mountInfo = readFileSync('/proc/self/mountinfo', 'utf8')): readonly string[] {
  return mountInfo
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
    .filter((point) => point.startsWith(`${dir}/`));
}
