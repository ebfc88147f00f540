import { messageOf } from '../../shared/errors.ts';
import type { ProviderCheck } from '../provider.ts';
import type { AwsClients } from './client.ts';
import { awsCode } from './errors.ts';
import type { CredentialSource } from './credentials.ts';

const off = (summary: string, ...remedies: readonly string[]): ProviderCheck => ({
  enabled: false,
  summary,
  remedies,
  details: [],
  sharedPorts: undefined,
});

/** The result without credentials, and without a request. */
export const withoutCredentials: ProviderCheck = off(
  'No credentials were found: neither in the environment nor in ~/.aws.',
  'Run: aws configure sso (or: aws configure); docs/clouds/aws.md lists the rights they need.',
);

/** `quotasOf` returns quotas to display. Throws only when cancelled. */
export async function checkCredentials(
  clients: Pick<AwsClients, 'callerIdentity'>,
  region: string,
  source: CredentialSource,
  quotasOf: (account: string) => Promise<string | undefined>,
  signal: AbortSignal | undefined,
): Promise<ProviderCheck> {
  try {
    const { account, arn } = await clients.callerIdentity(region, signal);
    const quotas = await quotasOf(account);
    return {
      enabled: true,
      summary: `Account ${account} as ${arn.split(':').at(-1) ?? arn}`,
      remedies: [],
      details: [describeSource(source), ...(quotas === undefined ? [] : [[`vCPUs allowed in ${region}`, quotas] as const])],
      sharedPorts: undefined,
    };
  } catch (error) {
    signal?.throwIfAborted();
    return explain(error, source);
  }
}

function explain(error: unknown, source: CredentialSource): ProviderCheck {
  const code = awsCode(error) ?? (error instanceof Error ? error.name : '');
  const text = messageOf(error);
  const profile = source.kind === 'profile' ? source.name : undefined;
  const named = profile === undefined ? '' : ` --profile ${profile}`;
  const whose = `The credentials${profile === undefined ? '' : ` of the profile '${profile}'`}${source.kind === 'environment' ? ' in the environment' : ''}`;
  if (/\bsso\b/i.test(text))
    return off(`${whose} come from SSO, and that login has expired or was never made.`, `Run: aws sso login${named}`);
  if (code === 'CredentialsProviderError' || code === 'TokenProviderError') {
    if (profile !== undefined) {
      return off(
        `There are no credentials in the profile '${profile}'.`,
        'Run: aws configure list-profiles; then name one as aws.profile in config.yaml, or in AWS_PROFILE.',
      );
    }
    return off('No credentials were found.', `Run: aws configure sso${named} (or: aws configure${named})`);
  }
  // While these variables are set, the SDK ignores ~/.aws.
  const newKeys = 'Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN again, or unset them to use those in ~/.aws.';
  if (code.startsWith('ExpiredToken') || code === 'RequestExpired')
    return off(
      `${whose} have expired.`,
      source.kind === 'environment'
        ? newKeys
        : `Renew them, with SSO by: aws sso login${named}; and check that the clock of this machine is right.`,
    );
  if (
    code === 'InvalidClientTokenId' ||
    code === 'UnrecognizedClientException' ||
    code === 'SignatureDoesNotMatch' ||
    code === 'AuthFailure'
  )
    return off(
      `${whose} are not valid: AWS does not know the key, or the secret is another one.`,
      source.kind === 'environment' ? newKeys : `Run: aws configure${named}`,
    );
  if (code.startsWith('AccessDenied'))
    return off(`${whose} may do nothing at all: AWS denies even to say whose they are.`, 'Give the rights that docs/clouds/aws.md lists.');
  if (error instanceof Error && error.name === 'TimeoutError')
    return {
      ...off('AWS did not answer in time.', 'Check the network, a proxy, and AWS_ENDPOINT_URL where it is set.'),
      slow: 'AWS did not say whose credentials these are',
    };
  return off(`AWS cannot be asked: ${networkReason(error)}.`, 'Check the network, a proxy, and AWS_ENDPOINT_URL where it is set.');
}

function describeSource(source: CredentialSource): readonly [string, string] {
  if (source.kind === 'environment') return ['Credentials', 'AWS_ACCESS_KEY_ID in the environment'];
  return ['Profile', source.kind === 'profile' ? source.name : 'default'];
}

function networkReason(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const text = messageOf(error).split('\n')[0] ?? '';
  return text === '' ? (code ?? 'no reason given') : text.replace(/\.$/, '');
}
