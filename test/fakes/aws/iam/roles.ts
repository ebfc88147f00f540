import type * as sdk from '@aws-sdk/client-iam';
import { ApiError } from '../wire/api-error.ts';
import type { Iam, RoleRecord } from './iam.ts';

function document(text: string | undefined): string {
  try {
    const parsed: unknown = JSON.parse(text ?? '');
    if (typeof parsed === 'object' && parsed !== null && 'Statement' in parsed) return text ?? '';
  } catch {
    // The error below covers both cases, as at AWS.
  }
  throw new ApiError('MalformedPolicyDocument', 'Syntax errors in policy.', 400);
}

function checkedName(name: string | undefined): string {
  if (name !== undefined && /^[\w+=,.@-]{1,64}$/.test(name)) return name;
  throw new ApiError(
    'ValidationError',
    `The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-`,
    400,
  );
}

/** A role that a principal may assume. */
export function createRole(iam: Iam, input: sdk.CreateRoleRequest): sdk.CreateRoleResponse {
  const name = checkedName(input.RoleName);
  const path = input.Path ?? '/';
  const trust = document(input.AssumeRolePolicyDocument);
  void input.Description;
  void input.MaxSessionDuration;
  if (iam.roles.has(name)) throw new ApiError('EntityAlreadyExists', `Role with name ${name} already exists.`, 409);
  const role: RoleRecord = {
    name,
    id: iam.id('AROA'),
    arn: iam.arn('role', path, name),
    path,
    trust,
    createdAt: iam.now,
    visibleAt: iam.visibleAt(),
    tags: new Map((input.Tags ?? []).map(({ Key = '', Value = '' }) => [Key, Value])),
    policies: new Map(),
    attached: new Set(),
  };
  iam.roles.set(name, role);
  return { Role: iam.showRole(role) };
}

function conflict(what: string): ApiError {
  return new ApiError('DeleteConflict', `Cannot delete entity, must ${what} first.`, 409);
}

/** Refused while policies or profiles are attached to it. */
export function deleteRole(iam: Iam, { RoleName: name }: sdk.DeleteRoleRequest): object {
  const role = iam.role(name);
  if ([...iam.profiles.values()].some(({ roleName }) => roleName === role.name)) throw conflict('remove roles from instance profile');
  if (role.policies.size > 0) throw conflict('delete policies');
  if (role.attached.size > 0) throw conflict('detach all policies');
  iam.roles.delete(role.name);
  return {};
}

/** Roles that reads see, all on one page. */
export function listRoles(iam: Iam, { PathPrefix: prefix = '/' }: sdk.ListRolesRequest): sdk.ListRolesResponse {
  const roles = [...iam.roles.values()].filter((role) => role.visibleAt <= iam.now && role.path.startsWith(prefix));
  return { Roles: roles.map((role) => iam.showRole(role)), IsTruncated: false };
}

/** Replaces an inline policy. */
export function putRolePolicy(iam: Iam, input: sdk.PutRolePolicyRequest): object {
  iam.role(input.RoleName).policies.set(input.PolicyName ?? '', document(input.PolicyDocument));
  return {};
}

/** An inline policy, its text percent-encoded. */
export function getRolePolicy(iam: Iam, { RoleName: name, PolicyName: policy = '' }: sdk.GetRolePolicyRequest): sdk.GetRolePolicyResponse {
  const role = iam.readRole(name);
  const text = role.policies.get(policy);
  if (text === undefined) throw new ApiError('NoSuchEntity', `The role policy with name ${policy} cannot be found.`, 404);
  return { RoleName: role.name, PolicyName: policy, PolicyDocument: encodeURIComponent(text) };
}

/** Removes an inline policy. */
export function deleteRolePolicy(iam: Iam, { RoleName: name, PolicyName: policy = '' }: sdk.DeleteRolePolicyRequest): object {
  if (iam.role(name).policies.delete(policy)) return {};
  throw new ApiError('NoSuchEntity', `The role policy with name ${policy} cannot be found.`, 404);
}
