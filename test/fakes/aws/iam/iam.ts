import type * as sdk from '@aws-sdk/client-iam';
import { newId, pick, type Emulation } from '../core/emulation.ts';
import { ApiError } from '../wire/api-error.ts';

/** A role and its policies. */
export interface RoleRecord {
  readonly name: string;
  readonly id: string;
  readonly arn: string;
  readonly path: string;
  readonly trust: string;
  readonly createdAt: number;
  readonly visibleAt: number;
  readonly tags: Map<string, string>;
  readonly policies: Map<string, string>;
  readonly attached: Set<string>;
}

/** An instance profile, which attaches a role to a machine. */
export interface ProfileRecord {
  readonly name: string;
  readonly id: string;
  readonly arn: string;
  readonly path: string;
  readonly createdAt: number;
  readonly visibleAt: number;
  readonly tags: Map<string, string>;
  roleName: string | undefined;
  /** When EC2 begins to see the role in it, ms since the epoch. */
  roleVisibleAt: number;
}

function noSuch(what: string, name: string): ApiError {
  return new ApiError(
    'NoSuchEntity',
    what === 'Role' ? `The role with name ${name} cannot be found.` : `${what} ${name} cannot be found.`,
    404,
  );
}

/**
 * The roles and instance profiles of the account. Writes see each other at once; reads and EC2 see them after a delay.
 */
export class Iam {
  readonly roles = new Map<string, RoleRecord>();
  readonly profiles = new Map<string, ProfileRecord>();
  readonly #emulation: Emulation;

  constructor(emulation: Emulation) {
    this.#emulation = emulation;
  }

  get now(): number {
    return this.#emulation.clock.now();
  }

  visibleAt(): number {
    return this.now + pick(this.#emulation.timing.invisibleMs.iam, this.#emulation.random);
  }

  id(prefix: string): string {
    return `${prefix}${newId('', this.#emulation.random, 17).slice(1).toUpperCase()}`;
  }

  arn(kind: string, path: string, name: string): string {
    return `arn:aws:iam::${this.#emulation.account}:${kind}${path}${name}`;
  }

  /** Returns the role for a change of it. */
  role(name: string | undefined): RoleRecord {
    const role = this.roles.get(name ?? '');
    if (role === undefined) throw noSuch('Role', name ?? '');
    return role;
  }

  profile(name: string | undefined): ProfileRecord {
    const profile = this.profiles.get(name ?? '');
    if (profile === undefined) throw noSuch('Instance Profile', name ?? '');
    return profile;
  }

  /** Returns the role as reads see it. */
  readRole(name: string | undefined): RoleRecord {
    const role = this.role(name);
    if (role.visibleAt > this.now) throw noSuch('Role', role.name);
    return role;
  }

  readProfile(name: string | undefined): ProfileRecord {
    const profile = this.profile(name);
    if (profile.visibleAt > this.now) throw noSuch('Instance Profile', profile.name);
    return profile;
  }

  /** For EC2: returns the profile's ARN once it and its role have propagated. */
  profileArn(nameOrArn: string): string | undefined {
    const profile = [...this.profiles.values()].find(({ name, arn }) => name === nameOrArn || arn === nameOrArn);
    if (profile === undefined || profile.visibleAt > this.now || profile.roleVisibleAt > this.now) return undefined;
    return profile.arn;
  }

  showRole(role: RoleRecord): sdk.Role {
    return {
      Path: role.path,
      RoleName: role.name,
      RoleId: role.id,
      Arn: role.arn,
      CreateDate: new Date(role.createdAt),
      AssumeRolePolicyDocument: encodeURIComponent(role.trust),
      Tags: [...role.tags].map(([Key, Value]) => ({ Key, Value })),
    };
  }

  showProfile(profile: ProfileRecord): sdk.InstanceProfile {
    const role = profile.roleName === undefined ? undefined : this.roles.get(profile.roleName);
    return {
      Path: profile.path,
      InstanceProfileName: profile.name,
      InstanceProfileId: profile.id,
      Arn: profile.arn,
      CreateDate: new Date(profile.createdAt),
      Roles: role === undefined ? [] : [this.showRole(role)],
      Tags: [...profile.tags].map(([Key, Value]) => ({ Key, Value })),
    };
  }
}
