import type { SshTarget } from '../../remote/ssh/index.ts';
import { SvcError } from '../../shared/errors.ts';
import type { HomeIdentity } from './home-identity.ts';
import type { InstanceSight } from './instance-view.ts';
import type { InstanceRef } from './machine-id.ts';

/** The folder of the replica or the controller on its machine. */
export function machineBaseDir({ user }: Pick<InstanceRef, 'user'>): string {
  return user === 'root' ? '/root/svc' : `/home/${user}/svc`;
}

/** The address at which others reach a machine; undefined while it has none. */
export function hostOf(sight: InstanceSight, useInternalIps: boolean): string | undefined {
  return useInternalIps ? sight.privateHost : sight.publicHost;
}

/** How to log in to a machine. Throws SVC_MACHINE_LOST when it is gone, and SVC_SSH while it has no address. */
export function sshTarget(ref: InstanceRef, sight: InstanceSight, identity: HomeIdentity, useInternalIps: boolean): SshTarget {
  const name = `${ref.instanceId} in ${ref.region}`;
  if (sight.status.state === 'gone') throw new SvcError('SVC_MACHINE_LOST', `The machine ${name} is gone (${sight.status.reason}).`);
  const host = hostOf(sight, useInternalIps);
  if (host === undefined) {
    throw new SvcError('SVC_SSH', `The machine ${name} has no ${useInternalIps ? 'private' : 'public'} address.`, {
      hint: 'If it keeps having none: its subnet gives none; set aws.use_internal_ips in config.yaml where private ones can be reached.',
    });
  }
  const { publicLine } = identity.hostKey(sight.key ?? '');
  return { name, host, user: ref.user, identityFile: identity.keyFile, userConfig: false, hostKeys: [withoutComment(publicLine)] };
}

function withoutComment(publicLine: string): string {
  return publicLine.split(' ').slice(0, 2).join(' ');
}
