import { randomBytes } from 'node:crypto';
import * as sdk from '@aws-sdk/client-sts';
import { action, type Action, type Caller } from '../core/action.ts';
import type { Emulation } from '../core/emulation.ts';
import { apiError } from '../core/error-catalogue.ts';
import type { Iam } from '../iam/iam.ts';
import type { AccessKey } from '../sigv4/key-ring.ts';

const hourSeconds = 3_600;

/** Creates a key of a role session: valid until it expires, and only with its token. */
export function newSession(
  emulation: Emulation,
  roleName: string,
  session: string,
  seconds = hourSeconds,
): AccessKey & { readonly sessionToken: string; readonly expiresAt: number } {
  const key = {
    accessKeyId: `ASIA${randomBytes(8).toString('hex').toUpperCase()}`,
    secretAccessKey: randomBytes(30).toString('base64'),
    sessionToken: randomBytes(48).toString('base64'),
    expiresAt: emulation.clock.now() + seconds * 1_000,
    account: emulation.account,
    arn: `arn:aws:sts::${emulation.account}:assumed-role/${roleName}/${session}`,
    userId: `AROAEXAMPLE:${session}`,
  };
  emulation.keys.add(key);
  return key;
}

/** All emulated actions of STS. It checks that a role exists, but not who may assume it. */
export function stsActions(emulation: Emulation, iam: Iam): readonly Action[] {
  function assumeRole(input: sdk.AssumeRoleRequest, { key: caller }: Caller): sdk.AssumeRoleResponse {
    const { RoleArn: arn = '', RoleSessionName: session = '', DurationSeconds: seconds } = input;
    const role = [...iam.roles.values()].find((one) => one.arn === arn);
    if (role === undefined || role.visibleAt > emulation.clock.now()) {
      throw apiError('AccessDenied', `User: ${caller.arn} is not authorized to perform: sts:AssumeRole on resource: ${arn}`, 403);
    }
    const key = newSession(emulation, role.name, session, seconds);
    return {
      Credentials: {
        AccessKeyId: key.accessKeyId,
        SecretAccessKey: key.secretAccessKey,
        SessionToken: key.sessionToken,
        Expiration: new Date(key.expiresAt),
      },
      AssumedRoleUser: { Arn: key.arn, AssumedRoleId: key.userId },
    };
  }
  return [
    action(sdk.GetCallerIdentity$, (_input: sdk.GetCallerIdentityRequest, { key }): sdk.GetCallerIdentityResponse => ({
      Account: key.account,
      Arn: key.arn,
      UserId: key.userId,
    })),
    action(sdk.AssumeRole$, assumeRole),
  ];
}
