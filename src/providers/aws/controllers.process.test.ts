import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withAwsPlace, withAwsPlaceOf } from '../../../test/support/aws-place.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { ControllerTarget } from '../provider.ts';
import { readMachineId } from './machine-id.ts';

test('a controller elsewhere gets the keys of one profile, one on AWS none', async () => {
  await withAwsPlace({}, async (place) => {
    expect(await place.provider.credentials({ provider: 'aws', home: '/home/ubuntu/svc' }, {})).toBeUndefined();
    const given = await place.provider.credentials({ provider: 'ssh', home: '/root/h' }, {});
    expect(given?.summary).toBe('keys of the AWS profile default');
    expect(given?.environment).toMatchObject({ AWS_SHARED_CREDENTIALS_FILE: '/root/h/aws/credentials' });
    expect(given?.files[0]?.content).toContain('[default]\naws_access_key_id = AKIA');
  });
});

test('what a controller made that is lost is found in every region by who brought it up, and by nobody else, and removed whole', async () => {
  await withAwsPlace({}, async (place) => {
    const secretFor = async (target: ControllerTarget): Promise<string> => {
      const file = (await place.provider.credentials(target, {}))?.files.find(({ path }) => path === 'ssh/aws/secret');
      expect(file?.once).toBe(true);
      return file?.content ?? '';
    };
    const secret = await secretFor({ provider: 'ssh', home: '/h', key: 'c1' });
    expect(secret).toMatch(/^[0-9a-f]{64}\n$/);
    expect(await secretFor({ provider: 'aws', home: '/h', key: 'c1' })).toBe(secret);
    expect(await secretFor({ provider: 'aws', home: '/h', key: 'c2' })).not.toBe(secret);
    const tags = { 'svc-owner': 'c1', 'svc-service-key': 'one', 'svc-key': 'k1' };
    await withAwsPlaceOf(place, async (there) => {
      mkdirSync(join(there.paths.sshDir, 'aws'), { recursive: true });
      writeFileSync(join(there.paths.sshDir, 'aws', 'secret'), secret);
      await there.create('k1', { tags }, { region: 'eu-west-1' });
    });
    // Somebody else's, who calls it the same.
    await withAwsPlaceOf(place, (other) => other.create('k2', { tags }, { region: 'us-west-2' }).then(() => undefined));

    const found = await place.provider.list({ 'svc-owner': 'c1' }, {});
    expect(found.map(({ id, tags: its }) => [readMachineId(id)?.region, its])).toEqual([['eu-west-1', tags]]);
    expect(await place.provider.list({ 'svc-owner': 'c2' }, {})).toEqual([]);
    for (const { id } of found) await place.provider.destroy(id, {});
    await waitFor('everything to be released', () =>
      place.provider.release('c1', {}).then(
        () => true,
        () => false,
      ),
    );
    expect(new Set(place.aws.control.leftovers().map(({ region }) => region))).toEqual(new Set(['us-west-2']));

    place.aws.conduct.add({ action: 'DescribeInstances' }, { kind: 'error', code: 'AuthFailure', status: 401 });
    await expect(place.provider.list({ 'svc-owner': 'c2' }, {})).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
  });
});
