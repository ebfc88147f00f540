import { arch, cpus, loadavg, release, totalmem } from 'node:os';
import { startProgram } from './processes.ts';

/** The machine and program versions of the measurement, as lines of Markdown. Throws when a program is missing. */
export async function describeMachine(): Promise<string> {
  const [nginx, haproxy, wrk, commit] = await Promise.all([
    firstLine('nginx', ['-v']),
    firstLine('haproxy', ['-v']),
    firstLine('wrk', ['-v']),
    firstLine('git', ['describe', '--always', '--dirty']),
  ]);
  const gigabytes = (totalmem() / 1e9).toFixed(0);
  return [
    `* ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, commit ${commit}`,
    `* ${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown CPU'} (${arch()}), ${gigabytes} GB, Linux ${release()}, load before: ${loadavg()[0]?.toFixed(1)}`,
    `* Node.js ${process.version}; ${nginx}; ${haproxy.replace(/ -.*/, '')}; ${wrk.replace(/ \[.*/, '')}`,
  ].join('\n');
}

/** The first output line of a program, with any exit code: wrk prints its version and fails. */
async function firstLine(command: string, args: readonly string[]): Promise<string> {
  const program = startProgram(command, args);
  try {
    await program.exited;
  } catch (error) {
    throw new Error(`${command} does not run. Debian has it: apt-get install -y nginx-light haproxy wrk`, { cause: error });
  }
  return program.output().split('\n')[0]?.trim() ?? '';
}
