import type { Clock } from '../../shared/clock.ts';
import { runSsh } from './ssh-process.ts';

/** ssh's settings for a host, with the user's own configuration. */
export interface EffectiveConfig {
  readonly hostName: string;
  readonly user: string;
  readonly port: number;
  /** In the order of use; `~` is the home folder. They need not exist. */
  readonly identityFiles: readonly string[];
  readonly proxyJump: string | undefined;
  /** Whether ssh connects through a program of the user's. */
  readonly hasProxyCommand: boolean;
}

const timeoutMs = 5_000;

/** Runs `ssh -G`, which opens no connection. Undefined when ssh cannot parse its configuration. */
export async function effectiveConfig(host: string, clock: Clock): Promise<EffectiveConfig | undefined> {
  const { said, exitCode } = await runSsh(['-G', '--', host], { userConfig: true, timeoutMs, clock });
  return exitCode === 0 ? parseEffectiveConfig(said, host) : undefined;
}

/** Parses the output of `ssh -G`: one setting per line, with its name in lower case. */
export function parseEffectiveConfig(said: string, host: string): EffectiveConfig {
  const valuesOf = (name: string): readonly string[] =>
    said.split('\n').flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1).trim()] : []));
  const valueOf = (name: string): string | undefined => valuesOf(name).find((value) => value !== 'none');
  return {
    hostName: valueOf('hostname') ?? host,
    user: valueOf('user') ?? '',
    port: Number(valueOf('port') ?? 22),
    identityFiles: valuesOf('identityfile'),
    proxyJump: valueOf('proxyjump'),
    hasProxyCommand: valueOf('proxycommand') !== undefined,
  };
}
