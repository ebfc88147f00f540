import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isoTime } from '../../shared/clock.ts';
import { envVar } from '../../shared/env.ts';
import { hasErrno } from '../../shared/errors.ts';
import type { ControllerTarget, PortableCredentials } from '../provider.ts';
import type { AwsKeys } from './client.ts';

/** If false, the SDK need not be loaded, nor wait for the metadata service, which exists only on AWS machines. */
export function mayHaveCredentials(profile: string | undefined): boolean {
  if (profile !== undefined || sources.some((name) => envVar(name) !== undefined)) return true;
  return credentialFiles().some((file) => existsSync(file)) || (envVar('AWS_EC2_METADATA_DISABLED') !== 'true' && isOnAws());
}

/** The source in the SDK's default chain. */
export type CredentialSource =
  | { readonly kind: 'profile'; readonly name: string }
  | { readonly kind: 'environment' }
  | { readonly kind: 'default' };

/** The SDK's choice for the configuration's `profile`. A profile in the environment precedes keys there. */
export function credentialSource(profile: string | undefined): CredentialSource {
  const name = profile ?? envVar('AWS_PROFILE');
  if (name !== undefined) return { kind: 'profile', name };
  return { kind: envVar('AWS_ACCESS_KEY_ID') === undefined ? 'default' : 'environment' };
}

/** Changes when a user changes a credentials file. The SDK caches these files for the lifetime of the process. */
export function credentialFilesStamp(): string {
  return credentialFiles()
    .map((file) => `${file}=${statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? ''}`)
    .join(' ');
}

function credentialFiles(): readonly string[] {
  const folder = join(envVar('HOME') ?? '/', '.aws');
  return [envVar('AWS_SHARED_CREDENTIALS_FILE') ?? join(folder, 'credentials'), envVar('AWS_CONFIG_FILE') ?? join(folder, 'config')];
}

/** The SDK's default chain: https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html */
const sources = [
  'AWS_ACCESS_KEY_ID',
  'AWS_PROFILE',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
];

/** Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html */
const marks: readonly (readonly [path: string, beginsWith: string])[] = [
  ['/sys/devices/virtual/dmi/id/sys_vendor', 'Amazon EC2'],
  ['/sys/hypervisor/uuid', 'ec2'],
];

function isOnAws(): boolean {
  return marks.some(([path, beginning]) => {
    try {
      return readFileSync(path, 'utf8').startsWith(beginning);
    } catch (error) {
      if (hasErrno(error, 'ENOENT', 'EACCES', 'ENOTDIR', 'EIO')) return false;
      throw error;
    }
  });
}

const path = 'aws/credentials';

/** These replace Amazon's endpoints. A remote controller needs them too, to find the same resources. */
const endpointNames = [
  'AWS_ENDPOINT_URL',
  'AWS_ENDPOINT_URL_EC2',
  'AWS_ENDPOINT_URL_IAM',
  'AWS_ENDPOINT_URL_S3',
  'AWS_ENDPOINT_URL_SSM',
  'AWS_ENDPOINT_URL_STS',
];

/** A credentials file for a controller outside AWS, with the keys of one profile. */
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
