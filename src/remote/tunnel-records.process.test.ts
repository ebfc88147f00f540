import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { homePaths } from '../shared/paths.ts';
import { ForwarderLink } from './kubernetes/forwarder-link.ts';
import { SshForwards } from './ssh/forwards.ts';
import type { TunnelCarrier } from './tunnels.ts';

const pod = { namespace: 'n', name: 'p', container: 'main' };

// Paths and texts as the first version wrote them. Running ssh processes, forwarders and balancers of every version use
// them, so none of these may change.
const ofSsh = {
  open: (home: string): TunnelCarrier =>
    new SshForwards(homePaths(home, 0), ['h', '/base'], () => Promise.reject(new Error('not used')), new FakeClock()),
  file: 'ssh/ways/bc4cabcd2d',
  port: 'run/s/wbc4cabcd2d.80',
  socket: 'run/s/wbc4cabcd2d.783092c40e',
  record: (port: string) => ({ ways: [{ socket: port, to: 'localhost:80' }], addedTo: '12.34.56' }),
  read: (port: string) => ({ tunnels: [{ socket: port, to: 'localhost:80' }], route: { addedTo: '12.34.56' } }),
};
const ofPod = {
  open: (home: string): TunnelCarrier => new ForwarderLink(homePaths(home, 0), 'context', new FakeClock()).carrier(pod),
  file: 'kubernetes/28b8c501c8/ways/13d6268258',
  port: 'run/k/w13d6268258.80',
  socket: 'run/k/w13d6268258.783092c40e',
  record: (port: string) => ({ pod, ways: [{ socket: port, to: 80 }] }),
  read: (port: string) => ({ tunnels: [{ socket: port, to: 80 }], route: { pod } }),
};

const carriers = [
  ['SSH', ofSsh],
  ['pod', ofPod],
] as const;

test.for(carriers)(
  'records and sockets of %s tunnels keep their paths and their format',
  ([, { open, file, port, socket, record, read }]) =>
    withTempHome((home) => {
      const carrier = open(home);
      const { records, name } = carrier;
      expect([records.socket(name, 80), records.socket(name, '/run/x.sock')]).toEqual([join(home, port), join(home, socket)]);
      const path = join(home, file);
      const written = record(join(home, port));
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, JSON.stringify(written));
      const known = records.read(name);
      expect(known).toEqual(read(join(home, port)));
      expect(known?.tunnels[0]?.to).toBe(carrier.endOf(80));
      if (known !== undefined) records.write(name, known);
      expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(written);
    }),
);

test.for(carriers)('an incomplete %s record counts as absent, an incomplete tunnel is skipped', ([, { open, record, port, read }]) =>
  withTempHome((home) => {
    const { records, name } = open(home);
    const whole = record(join(home, port));
    mkdirSync(records.dir, { recursive: true });
    for (const key of Object.keys(whole)) {
      writeFileSync(join(records.dir, name), JSON.stringify({ ...whole, [key]: undefined }));
      expect({ key, record: records.read(name) }).toEqual({ key, record: undefined });
    }
    writeFileSync(join(records.dir, name), JSON.stringify({ ...whole, ways: [...whole.ways, { socket: '/s' }, null] }));
    expect(records.read(name)).toEqual(read(join(home, port)));
  }),
);

test('a removed record is not listed, and leaves no file', () =>
  withTempHome((home) => {
    const { records, name, newRoute } = ofPod.open(home);
    expect(records.list()).toEqual([]);
    records.write(name, { tunnels: [], route: newRoute });
    expect(records.list()).toEqual([name]);
    records.remove(name);
    records.remove(name);
    expect({ listed: records.list(), files: readdirSync(records.dir) }).toEqual({ listed: [], files: [] });
  }));
