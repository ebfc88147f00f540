import { accessSync, constants, readFileSync } from 'node:fs';
import type { IsolationKind, OutboundKind } from '../../remote/isolation/kinds.ts';

function setting(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    // This kernel does not have the setting.
    return undefined;
  }
}

/** What to do for something better than what is used; one sentence or command each, empty when nothing is better. */
export function remediesFor(kind: IsolationKind, outbound: OutboundKind): readonly string[] {
  return [...isolationRemedies(kind), ...outboundRemedies(outbound)];
}

function isolationRemedies(kind: IsolationKind): readonly string[] {
  if (kind !== 'none') return [];
  if (process.platform !== 'linux') return ['Run svc on Linux to have several machines of one service on one computer'];
  const remedies: string[] = [];
  if (setting('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1') {
    remedies.push(
      'AppArmor refuses user namespaces: sudo apt-get install bubblewrap apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict',
    );
  }
  if (setting('/proc/sys/user/max_user_namespaces') === '0') remedies.push('sudo sysctl user.max_user_namespaces=15000');
  if (setting('/proc/sys/kernel/unprivileged_userns_clone') === '0') remedies.push('sudo sysctl kernel.unprivileged_userns_clone=1');
  remedies.push('Install util-linux and iproute2 where unshare, setpriv or ip is missing: sudo apt-get install util-linux iproute2');
  return remedies;
}

function outboundRemedies(outbound: OutboundKind): readonly string[] {
  if (outbound !== 'proxy') return [];
  const install = 'For outbound connections that need no proxy: sudo apt-get install slirp4netns';
  return canUseTun() ? [install] : [`${install}; and let users open its device: sudo modprobe tun && sudo chmod 666 /dev/net/tun`];
}

/** The device with which an ordinary program makes a network. */
function canUseTun(): boolean {
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK);
    return true;
  } catch {
    // Not there, or root's alone.
    return false;
  }
}
