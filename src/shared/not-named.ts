import { didYouMean } from './did-you-mean.ts';
import { SvcError } from './errors.ts';

const kinds = {
  service: { code: 'SVC_SERVICE_NOT_FOUND', listCommand: 'svc serve status' },
  cluster: { code: 'SVC_CLUSTER_NOT_FOUND', listCommand: 'svc status' },
} as const;

/** Limit of names in the message. */
const shownNames = 5;

/** The error for a name without a service or cluster. It suggests a similar known name or lists the known names. */
export function notNamed(kind: keyof typeof kinds, name: string, known: readonly string[]): SvcError {
  const { code, listCommand } = kinds[kind];
  const meant = didYouMean(name, known);
  const names = [...known.slice(0, shownNames), ...(known.length > shownNames ? ['and more'] : [])];
  const hint =
    meant !== undefined
      ? `Did you mean '${meant}'? Run: ${listCommand}`
      : known.length > 0
        ? `There are: ${names.join(', ')}. Run: ${listCommand}`
        : undefined;
  return new SvcError(code, `There is no ${kind} named '${name}'.`, { hint });
}

/** Names of services or clusters. */
export function namesOf(things: readonly { readonly name: string }[]): readonly string[] {
  return things.map(({ name }) => name);
}
