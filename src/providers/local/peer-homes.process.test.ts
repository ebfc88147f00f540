import { expect, test } from 'vitest';
import { aMachineSpec, someResources } from '../../../test/support/builders.ts';
import { withLocalProvider } from '../../../test/support/local-provider.ts';
import { aProviderContext } from '../../../test/support/provider-context.ts';
import { defaultConfig } from '../../domain/config.ts';
import { openProvider } from '../registry.ts';

test('machines of a peer home are found, usable and destroyed, and never created twice', async () => {
  await withLocalProvider({ isolation: 'none' }, (first) =>
    withLocalProvider({ isolation: 'none' }, async (second) => {
      const { id, remote } = await first.machine('one-key');
      const config = { ...defaultConfig, local: { ...defaultConfig.local, isolation: 'none' as const } };
      const change = { config: () => Promise.resolve(config), peerHomes: [first.paths] };
      const peer = await openProvider('local', aProviderContext(second.paths.home, change));
      expect(await peer.inspect([id], {})).toEqual(new Map([[id, { state: 'running' }]]));
      expect((await peer.list({ 'svc-key': 'one-key' }, {})).map((machine) => machine.id)).toEqual([id]);
      expect([peer.remote(id).baseDir, await peer.remote(id).address(8080, {})]).toEqual([remote.baseDir, await remote.address(8080, {})]);

      const [offer] = (await peer.offers(someResources(), {})).offers;
      if (offer === undefined) throw new Error('no offer');
      expect(await peer.create(offer, aMachineSpec({ ports: [8080] }), 'one-key', {})).toBe(id);
      expect(await second.provider.list({}, {})).toEqual([]);
      const own = await peer.create(offer, aMachineSpec({ ports: [8080] }), 'another-key', {});
      expect((await second.provider.list({}, {})).map((machine) => machine.id)).toEqual([own]);

      await peer.destroy(id, {});
      expect(await first.provider.list({}, {})).toEqual([]);
      expect(await peer.inspect([id, own], {})).toEqual(
        new Map([
          [id, { state: 'gone', reason: 'unknown' }],
          [own, { state: 'running' }],
        ]),
      );
    }),
  );
});
