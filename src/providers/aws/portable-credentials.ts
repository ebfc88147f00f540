import { join } from 'node:path';
import { isoTime } from '../../shared/clock.ts';
import { envVar } from '../../shared/env.ts';
import type { ControllerTarget, PortableCredentials } from '../provider.ts';
import type { AwsKeys } from './client.ts';

const path = 'aws/credentials';

/**
 * Variables that replace Amazon's endpoints. A remote controller needs them too, because it must find the same
 * resources.
 */
const endpointNames = [
  'AWS_ENDPOINT_URL',
  'AWS_ENDPOINT_URL_EC2',
  'AWS_ENDPOINT_URL_IAM',
  'AWS_ENDPOINT_URL_S3',
  'AWS_ENDPOINT_URL_SSM',
  'AWS_ENDPOINT_URL_STS',
];

/** A credentials file of the SDK for a controller outside AWS. It contains the keys of one profile only. */
export function portableCredentials(keys: AwsKeys, profile: string | undefined, target: ControllerTarget): PortableCredentials {
  const name = profile ?? 'default';
  const lines = [
    `[${name}]`,
    `aws_access_key_id = ${keys.accessKeyId}`,
    `aws_secret_access_key = ${keys.secretAccessKey}`,
    ...(keys.sessionToken === undefined ? [] : [`aws_session_token = ${keys.sessionToken}`]),
  ];
  const until = keys.expiresAt === undefined ? '' : `, good until ${isoTime(keys.expiresAt)}`;
  return {
    summary: `keys of the AWS profile ${name}${until}`,
    files: [{ path, content: `${lines.join('\n')}\n` }],
    environment: { AWS_SHARED_CREDENTIALS_FILE: join(target.home, path), AWS_EC2_METADATA_DISABLED: 'true', ...endpoints() },
  };
}

function endpoints(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    endpointNames.flatMap((name) => {
      const value = envVar(name);
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
