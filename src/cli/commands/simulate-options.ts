import { didYouMean } from '../../shared/did-you-mean.ts';
import { SvcError } from '../../shared/errors.ts';
import type { PolicyPair } from '../../simulate/combined-simulation.ts';
import { requestPolicies } from '../../simulate/request-policies.ts';
import { spotPolicies } from '../../simulate/spot-policies.ts';

/** The policies that a run compares. */
interface ComparedPolicies {
  /** Undefined: all but the one of the file. */
  readonly requests: readonly (keyof typeof requestPolicies)[] | undefined;
  readonly spot: readonly (keyof typeof spotPolicies)[] | undefined;
  /** Such as `forecast+round_robin`. */
  readonly pairs: readonly PolicyPair[];
}

/** Every policy over requests. */
export const requestNames = Object.keys(requestPolicies).filter(isRequestPolicy);
/** Every policy over spot capacity. */
export const spotNames = Object.keys(spotPolicies).filter(isSpotPolicy);

function isRequestPolicy(name: string): name is keyof typeof requestPolicies {
  return Object.hasOwn(requestPolicies, name);
}

function isSpotPolicy(name: string): name is keyof typeof spotPolicies {
  return Object.hasOwn(spotPolicies, name);
}

/** The policies of `--compare`; all when absent. A list for one of the two kinds leaves the other complete. */
export function comparedPolicies(list: string | undefined): ComparedPolicies {
  const names = (list ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const pairs = names.filter((name) => name.includes('+')).map(pairOf);
  const single = names.filter((name) => !name.includes('+'));
  for (const name of single) if (!isRequestPolicy(name) && !isSpotPolicy(name)) throw unknownPolicy(name);
  const requests = single.filter(isRequestPolicy);
  const spot = single.filter(isSpotPolicy);
  return { requests: requests.length > 0 ? requests : undefined, spot: spot.length > 0 ? spot : undefined, pairs };
}

function pairOf(name: string): PolicyPair {
  const [autoscaler = '', placer = ''] = name.split('+', 2);
  if (autoscaler !== 'file' && !isRequestPolicy(autoscaler)) throw unknownPolicy(autoscaler);
  if (!isSpotPolicy(placer)) throw unknownPolicy(placer);
  return { autoscaler, placer };
}

function unknownPolicy(name: string): SvcError {
  const meant = didYouMean(name, [...requestNames, ...spotNames]);
  return new SvcError('SVC_USAGE', `There is no policy '${name}' to compare.`, {
    hint: `${meant === undefined ? '' : `Did you mean '${meant}'? `}Over requests: ${requestNames.join(', ')}. Over spot capacity: ${spotNames.join(', ')}. Over both: a pair such as forecast+hedge.`,
  });
}

/**
 * The pairs of a run over requests and spot capacity together, the file's first. Each autoscaler runs with the placer of
 * the file, and each placer with the autoscaler of the file; a list with only one kind or only pairs has no others.
 */
export function comparedPairs(
  { requests, spot, pairs }: ComparedPolicies,
  own: { readonly autoscaler: keyof typeof requestPolicies | undefined; readonly placer: PolicyPair['placer'] },
): readonly PolicyPair[] {
  const isWhole = requests === undefined && spot === undefined && pairs.length === 0;
  const autoscalers = requests ?? (isWhole ? requestNames.filter((name) => name !== own.autoscaler) : []);
  const all: readonly PolicyPair[] = [
    { autoscaler: 'file', placer: own.placer },
    ...autoscalers.map((autoscaler) => ({ autoscaler, placer: own.placer })),
    ...(spot ?? (isWhole ? spotNames : [])).map((placer) => ({ autoscaler: 'file' as const, placer })),
    ...pairs,
  ];
  return [...new Map(all.map((pair) => [`${pair.autoscaler}+${pair.placer}`, pair])).values()];
}

/** A number of an option within bounds; undefined when it was not given. Throws SVC_USAGE. */
export function numberOf(text: string | undefined, option: string, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (number >= least && number <= most) return number;
  throw new SvcError('SVC_USAGE', `${option} is '${text}', which is not a number from ${least} to ${most}.`, {
    hint: 'Run: svc simulate --help',
  });
}
