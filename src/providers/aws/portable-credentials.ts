import { join } from 'node:path';
import { isoTime } from '../../shared/clock.ts';
import type { ControllerTarget, PortableCredentials } from '../provider.ts';
import type { AwsKeys } from './client.ts';

const path = 'aws/credentials';

/** Keys as a file of the SDK for a controller that is not on AWS: those of one profile and no other. */
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
    environment: { AWS_SHARED_CREDENTIALS_FILE: join(target.home, path), AWS_EC2_METADATA_DISABLED: 'true' },
  };
}
