import type { LocalConfig } from '../../domain/config.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ProviderCheck } from '../provider.ts';
import { describeGpus, findGpus } from './gpus.ts';
import { chooseIsolation, type IsolationChoice, type IsolationContext } from './isolation.ts';
import { isolationNames, outboundNames } from './isolation-kinds.ts';

/** This computer as `svc check` shows it. */
export async function checkLocal(context: IsolationContext, settings: LocalConfig): Promise<ProviderCheck> {
  const gpus = await findGpus(context.clock, settings.gpus);
  const regions = settings.regions.map(({ name, state }) => (state === 'up' ? name : `${name} (${state})`)).join(', ');
  const facts = [
    ['GPUs', describeGpus(gpus)],
    ['regions', regions],
  ] as const;
  let choice: IsolationChoice;
  try {
    choice = await chooseIsolation(context, settings.isolation);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return { enabled: false, summary: error.message, remedies: [error.hint], details: facts };
  }
  return {
    enabled: true,
    summary: `this computer; isolation: ${choice.kind}${choice.isForced ? ' (as set)' : ''}, outbound: ${choice.outbound}`,
    remedies: choice.remedies,
    details: [
      ['isolation', isolationNames[choice.kind]],
      ...choice.refused.map(([name, why]) => [`not ${name}`, why] as const),
      ['outbound', outboundNames[choice.outbound]],
      ...facts,
    ],
  };
}

/** What in `run` shows that the program listens where it is told to. */
const portMention = /\$\{?SVC_REPLICA_PORT\b/;

/**
 * Why a service cannot have more than one replica here; undefined when it can. Without a network of its own each machine has its own port, so
 * that `run` must take the port from $SVC_REPLICA_PORT.
 */
export async function whyOneReplica(context: IsolationContext, settings: LocalConfig, run: string): Promise<string | undefined> {
  const { kind, refused } = await chooseIsolation(context, settings.isolation);
  if (kind !== 'none' || portMention.test(run)) return undefined;
  const [[, why] = []] = refused;
  return `Several replicas on this computer would all listen on the same port, as they cannot be isolated${why === undefined ? '' : ` (${why})`}.`;
}
