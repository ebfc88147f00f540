import type { SshHost } from '../../domain/ssh-pool.ts';
import { SshRemote, type SshTarget } from '../../remote/ssh/index.ts';
import type { Clock } from '../../shared/clock.ts';
import type { HomePaths } from '../../shared/paths.ts';
import type { OpenRemote } from './remotes.ts';

/** Opens hosts over SSH. */
export function openSshRemotes(paths: HomePaths, clock: Clock): OpenRemote {
  return ({ pool, host, baseDir, enter, environment, wayIn }) => {
    const target = sshTarget(pool, host);
    return new SshRemote({ target: () => Promise.resolve(target), baseDir, enter, environment, address: { wayIn }, paths, clock });
  };
}

/** What the file of pools does not say, the user's own `~/.ssh/config` does. */
function sshTarget(pool: string, { host, port, user, identityFile, proxyJump }: SshHost): SshTarget {
  return {
    name: `${host} of the pool ${pool}`,
    host,
    ...(port === undefined ? {} : { port }),
    ...(user === undefined ? {} : { user }),
    ...(identityFile === undefined ? {} : { identityFile }),
    ...(proxyJump === undefined ? {} : { proxyJump }),
    userConfig: true,
    hostKeys: 'pin-first',
  };
}
