import { LocalRemote, type LocalRemoteSettings } from '../../src/remote/local.ts';
import { systemClock } from '../../src/shared/clock.ts';

/** A folder of this computer as a machine, whose ports are this computer's. */
export function aLocalRemote(baseDir: string, environment: LocalRemoteSettings['environment'] = {}): LocalRemote {
  return new LocalRemote({
    baseDir,
    enter: [],
    environment,
    address: (port) => ({ kind: 'tcp', host: '127.0.0.1', port }),
    clock: systemClock,
  });
}
