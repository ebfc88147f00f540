import { didYouMean } from '../../shared/did-you-mean.ts';
import { SvcError } from '../../shared/errors.ts';
import { requestPolicies } from '../../simulate/request-policies.ts';
import { spotPolicies } from '../../simulate/spot-policies.ts';

/** The policies that a run compares. */
interface ComparedPolicies {
  /** Undefined: all but the one of the file. */
  readonly requests: readonly (keyof typeof requestPolicies)[] | undefined;
  readonly spot: readonly (keyof typeof spotPolicies)[];
}

/** Every policy over requests. */
export const requestNames = Object.keys(requestPolicies).filter(isRequestPolicy);
const spotNames = Object.keys(spotPolicies).filter(isSpotPolicy);

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
  for (const name of names) {
    if (isRequestPolicy(name) || isSpotPolicy(name)) continue;
    const meant = didYouMean(name, [...requestNames, ...spotNames]);
    throw new SvcError('SVC_USAGE', `There is no policy '${name}' to compare.`, {
      hint: `${meant === undefined ? '' : `Did you mean '${meant}'? `}Over requests: ${requestNames.join(', ')}. Over spot capacity: ${spotNames.join(', ')}.`,
    });
  }
  const requests = names.filter(isRequestPolicy);
  const spot = names.filter(isSpotPolicy);
  return { requests: requests.length > 0 ? requests : undefined, spot: spot.length > 0 ? spot : spotNames };
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
