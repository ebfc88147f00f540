import { gpuQuery, parseGpuList, type Gpu } from '../../domain/gpus.ts';
import type { Accelerator } from '../../domain/task.ts';
import { runCommand } from '../../remote/run-command.ts';
import type { Clock } from '../../shared/clock.ts';
import { wholeEnv } from '../../shared/env.ts';

/** The driver can take seconds to wake up. */
const queryTimeoutMs = 20_000;

let detected: Promise<readonly Gpu[]> | undefined;

/**
 * The GPUs of this machine; queried once per process. The query also makes the driver create its device files, which
 * machines then find.
 */
export function findGpus(clock: Clock, configured: Accelerator | undefined): Promise<readonly Gpu[]> {
  if (configured !== undefined) {
    const { name, count } = configured;
    return Promise.resolve(Array.from({ length: Math.floor(count) }, (_, index) => ({ index, name, memoryGb: undefined })));
  }
  detected ??= queryDriver(clock);
  return detected;
}

async function queryDriver(clock: Clock): Promise<readonly Gpu[]> {
  const { exitCode, stdout } = await runCommand(gpuQuery, { env: wholeEnv(), clock, timeoutMs: queryTimeoutMs });
  return exitCode === 0 ? parseGpuList(stdout) : [];
}
