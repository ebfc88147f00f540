import { fingerprint } from '../../shared/fingerprint.ts';
import type { Iam } from './client.ts';
import { hasAwsCode } from './errors.ts';
import { controllerPolicy, controllerTrust, rolePrefix } from './iam-policy.ts';
import { sharedTags } from './tags.ts';

const policyName = 'svc';

/** The name of an owner's role and of the instance profile that holds it. */
function controllerRoleName(owner: string): string {
  return `${rolePrefix}${fingerprint(owner)}`;
}

/** Makes the role by which a controller launches replicas without keys of its own. Safe to repeat after a crash at any step. */
export async function ensureControllerRole(iam: Iam, home: string, owner: string): Promise<string> {
  const name = controllerRoleName(owner);
  const Tags = sharedTags(home, owner);
  const AssumeRolePolicyDocument = JSON.stringify(controllerTrust);
  await unless('EntityAlreadyExists', () => iam.createRole({ RoleName: name, AssumeRolePolicyDocument, Tags }));
  await iam.putRolePolicy(name, policyName, JSON.stringify(controllerPolicy));
  await unless('EntityAlreadyExists', () => iam.createInstanceProfile(name, Tags));
  // An instance profile holds one role: one that has it refuses a second, also the same.
  await unless('LimitExceeded', () => iam.addRoleToInstanceProfile(name, name));
  return name;
}

/** Removes what `ensureControllerRole` made, as far as it is there, in the only order that IAM allows. */
export async function removeControllerRole(iam: Iam, owner: string): Promise<void> {
  const name = controllerRoleName(owner);
  await unless('NoSuchEntity', () => iam.removeRoleFromInstanceProfile(name, name));
  await unless('NoSuchEntity', () => iam.deleteInstanceProfile(name));
  await unless('NoSuchEntity', () => iam.deleteRolePolicy(name, policyName));
  await unless('NoSuchEntity', () => iam.deleteRole(name));
}

async function unless(code: string, call: () => Promise<unknown>): Promise<void> {
  try {
    await call();
  } catch (error) {
    // The SDK names some of IAM's errors with "Exception" at the end, and the service without.
    if (!hasAwsCode(error, code, `${code}Exception`)) throw error;
  }
}
