import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { envVar } from '../../shared/env.ts';
import { hasErrno } from '../../shared/errors.ts';

/**
 * Whether the SDK could find credentials at all. Where it says no, the SDK need not be loaded, and the metadata service, which only machines of
 * AWS have, isn't waited for.
 */
export function mayHaveCredentials(profile: string | undefined): boolean {
  if (profile !== undefined || sources.some((name) => envVar(name) !== undefined)) return true;
  return credentialFiles().some((file) => existsSync(file)) || (envVar('AWS_EC2_METADATA_DISABLED') !== 'true' && isOnAws());
}

/** Where the credentials come from that the SDK's default chain takes: those of a named profile, else of the environment, else of wherever there are any. */
export type CredentialSource =
  | { readonly kind: 'profile'; readonly name: string }
  | { readonly kind: 'environment' }
  | { readonly kind: 'default' };

/** What the SDK takes when the configuration names `profile` or none. A profile in the environment goes before keys there. */
export function credentialSource(profile: string | undefined): CredentialSource {
  const name = profile ?? envVar('AWS_PROFILE');
  if (name !== undefined) return { kind: 'profile', name };
  return { kind: envVar('AWS_ACCESS_KEY_ID') === undefined ? 'default' : 'environment' };
}

/** Changes when the user changes a file with credentials: the SDK keeps what it read for as long as the process lives. */
export function credentialFilesStamp(): string {
  return credentialFiles()
    .map((file) => `${file}=${statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? ''}`)
    .join(' ');
}

function credentialFiles(): readonly string[] {
  const folder = join(envVar('HOME') ?? '/', '.aws');
  return [envVar('AWS_SHARED_CREDENTIALS_FILE') ?? join(folder, 'credentials'), envVar('AWS_CONFIG_FILE') ?? join(folder, 'config')];
}

/** Variables of the SDK's default chain: https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html */
const sources = [
  'AWS_ACCESS_KEY_ID',
  'AWS_PROFILE',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
];

/** Files by which a machine of EC2 is known: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html */
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
