import * as sdk from '@aws-sdk/client-iam';
import { action, type Action } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Iam, ProfileRecord } from './iam.ts';
import * as roles from './roles.ts';

function createProfile(iam: Iam, input: sdk.CreateInstanceProfileRequest): sdk.CreateInstanceProfileResponse {
  const { InstanceProfileName: name = '', Path: path = '/' } = input;
  if (iam.profiles.has(name)) throw new ApiError('EntityAlreadyExists', `Instance Profile ${name} already exists.`, 409);
  const profile: ProfileRecord = {
    name,
    id: iam.id('AIPA'),
    arn: iam.arn('instance-profile', path, name),
    path,
    createdAt: iam.now,
    visibleAt: iam.visibleAt(),
    tags: new Map((input.Tags ?? []).map(({ Key = '', Value = '' }) => [Key, Value])),
    roleName: undefined,
    roleVisibleAt: 0,
  };
  iam.profiles.set(name, profile);
  return { InstanceProfile: iam.showProfile(profile) };
}

function addRole(iam: Iam, input: sdk.AddRoleToInstanceProfileRequest): object {
  const profile = iam.profile(input.InstanceProfileName);
  const role = iam.role(input.RoleName);
  if (profile.roleName !== undefined) {
    throw new ApiError('LimitExceeded', 'Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1', 409);
  }
  profile.roleName = role.name;
  profile.roleVisibleAt = iam.visibleAt();
  return {};
}

function removeRole(iam: Iam, input: sdk.RemoveRoleFromInstanceProfileRequest): object {
  const profile = iam.profile(input.InstanceProfileName);
  if (profile.roleName !== input.RoleName) {
    throw new ApiError('NoSuchEntity', `The role ${input.RoleName ?? ''} is not in the instance profile ${profile.name}.`, 404);
  }
  profile.roleName = undefined;
  return {};
}

function deleteProfile(iam: Iam, input: sdk.DeleteInstanceProfileRequest): object {
  const profile = iam.profile(input.InstanceProfileName);
  if (profile.roleName !== undefined)
    throw new ApiError('DeleteConflict', 'Cannot delete entity, must remove roles from instance profile first.', 409);
  iam.profiles.delete(profile.name);
  return {};
}

function listProfiles(iam: Iam, input: sdk.ListInstanceProfilesRequest): sdk.ListInstanceProfilesResponse {
  const prefix = input.PathPrefix ?? '/';
  const seen = [...iam.profiles.values()].filter((profile) => profile.visibleAt <= iam.now && profile.path.startsWith(prefix));
  return { InstanceProfiles: seen.map((profile) => iam.showProfile(profile)), IsTruncated: false };
}

/** All emulated actions of IAM. */
export function iamActions(iam: Iam): readonly Action[] {
  return [
    action(sdk.CreateRole$, (input: sdk.CreateRoleRequest) => roles.createRole(iam, input)),
    action(sdk.GetRole$, (input: sdk.GetRoleRequest): sdk.GetRoleResponse => ({ Role: iam.showRole(iam.readRole(input.RoleName)) })),
    action(sdk.DeleteRole$, (input: sdk.DeleteRoleRequest) => roles.deleteRole(iam, input)),
    action(sdk.ListRoles$, (input: sdk.ListRolesRequest) => roles.listRoles(iam, input)),
    action(sdk.PutRolePolicy$, (input: sdk.PutRolePolicyRequest) => roles.putRolePolicy(iam, input)),
    action(sdk.GetRolePolicy$, (input: sdk.GetRolePolicyRequest) => roles.getRolePolicy(iam, input)),
    action(sdk.DeleteRolePolicy$, (input: sdk.DeleteRolePolicyRequest) => roles.deleteRolePolicy(iam, input)),
    action(sdk.ListRolePolicies$, (input: sdk.ListRolePoliciesRequest): sdk.ListRolePoliciesResponse => ({
      PolicyNames: [...iam.readRole(input.RoleName).policies.keys()],
      IsTruncated: false,
    })),
    action(sdk.CreateInstanceProfile$, (input: sdk.CreateInstanceProfileRequest) => createProfile(iam, input)),
    action(sdk.GetInstanceProfile$, (input: sdk.GetInstanceProfileRequest): sdk.GetInstanceProfileResponse => ({
      InstanceProfile: iam.showProfile(iam.readProfile(input.InstanceProfileName)),
    })),
    action(sdk.AddRoleToInstanceProfile$, (input: sdk.AddRoleToInstanceProfileRequest) => addRole(iam, input)),
    action(sdk.RemoveRoleFromInstanceProfile$, (input: sdk.RemoveRoleFromInstanceProfileRequest) => removeRole(iam, input)),
    action(sdk.DeleteInstanceProfile$, (input: sdk.DeleteInstanceProfileRequest) => deleteProfile(iam, input)),
    action(sdk.ListInstanceProfiles$, (input: sdk.ListInstanceProfilesRequest) => listProfiles(iam, input)),
  ];
}
