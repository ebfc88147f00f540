import type { LocalConfig } from '../../domain/config.ts';
import { describeGpus } from '../../domain/gpus.ts';
import { isolationNames, outboundNames } from '../../remote/isolation/kinds.ts';
import { SvcError } from '../../shared/errors.ts';
import type { ProviderCheck } from '../provider.ts';
import { findGpus } from './gpus.ts';
import { chooseIsolation, type IsolationChoice, type IsolationContext } from './isolation.ts';

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
    return { enabled: false, summary: error.message, remedies: [error.hint], details: facts, sharedPorts: undefined };
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
    sharedPorts: choice.kind === 'none' ? whyNotIsolated(choice) : undefined,
  };
}

function whyNotIsolated({ isForced, refused }: IsolationChoice): string {
  const [[, why] = []] = refused;
  return isForced || why === undefined ? 'isolation is turned off on this computer' : `this computer cannot isolate them (${why})`;
}
