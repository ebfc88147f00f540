import { messageOf } from '../../shared/errors.ts';
import type { ProviderCheck } from '../provider.ts';
import type { AwsClients } from './client.ts';
import { awsCode } from './errors.ts';
import { quotaLine } from './quotas.ts';

const off = (summary: string, ...remedies: readonly string[]): ProviderCheck => ({
  enabled: false,
  summary,
  remedies,
  details: [],
  sharedPorts: undefined,
});

/** What is said where there is nothing to log in with, without having asked anybody. */
export const withoutCredentials: ProviderCheck = off(
  'No credentials were found: neither in the environment nor in ~/.aws.',
  'Run: aws configure sso (or: aws configure); docs/clouds/aws.md lists the rights they need.',
);

/** Asks AWS whose credentials these are. Throws only when cancelled. */
export async function checkCredentials(
  clients: Pick<AwsClients, 'callerIdentity' | 'quota'>,
  region: string,
  profile: string | undefined,
  signal: AbortSignal | undefined,
): Promise<ProviderCheck> {
  try {
    const { account, arn } = await clients.callerIdentity(region, signal);
    const quotas = await quotaLine(clients, region, signal);
    return {
      enabled: true,
      summary: `Account ${account} as ${arn.split(':').at(-1) ?? arn}`,
      remedies: [],
      details: [['Profile', profile ?? 'default'], ...(quotas === undefined ? [] : [[`vCPUs allowed in ${region}`, quotas] as const])],
      sharedPorts: undefined,
    };
  } catch (error) {
    signal?.throwIfAborted();
    return explain(error, profile);
  }
}

/** Why credentials are none, and what to do, for what AWS and its SDK say. */
function explain(error: unknown, profile: string | undefined): ProviderCheck {
  const code = awsCode(error) ?? (error instanceof Error ? error.name : '');
  const text = messageOf(error);
  const named = profile === undefined ? '' : ` --profile ${profile}`;
  const whose = profile === undefined ? 'The credentials' : `The credentials of the profile '${profile}'`;
  if (/\bsso\b/i.test(text))
    return off(`${whose} come from SSO, and that login has expired or was never made.`, `Run: aws sso login${named}`);
  if (code === 'CredentialsProviderError' || code === 'TokenProviderError') {
    if (profile !== undefined) {
      return off(
        `There are no credentials in the profile '${profile}'.`,
        'Run: aws configure list-profiles; then name one as aws.profile in config.yaml.',
      );
    }
    return off('No credentials were found.', `Run: aws configure sso${named} (or: aws configure${named})`);
  }
  if (code.startsWith('ExpiredToken') || code === 'RequestExpired')
    return off(
      `${whose} have expired.`,
      `Renew them, with SSO by: aws sso login${named}; and check that the clock of this machine is right.`,
    );
  if (
    code === 'InvalidClientTokenId' ||
    code === 'UnrecognizedClientException' ||
    code === 'SignatureDoesNotMatch' ||
    code === 'AuthFailure'
  )
    return off(`${whose} are not valid: AWS does not know the key, or the secret is another one.`, `Run: aws configure${named}`);
  if (code.startsWith('AccessDenied'))
    return off(`${whose} may do nothing at all: AWS denies even to say whose they are.`, 'Give the rights that docs/clouds/aws.md lists.');
  return off(`AWS cannot be asked: ${networkReason(error)}.`, 'Check the network, a proxy, and AWS_ENDPOINT_URL where it is set.');
}

function networkReason(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const text = messageOf(error).split('\n')[0] ?? '';
  return text === '' ? (code ?? 'no reason given') : text.replace(/\.$/, '');
}
