import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withAwsProvider, withSecondAwsProvider } from '../../../test/support/aws-provider.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import type { ControllerTarget } from '../provider.ts';

test('a controller outside AWS gets the keys of one profile; one on AWS none', async () => {
  await withAwsProvider({}, async (fixture) => {
    expect(await fixture.provider.credentials({ provider: 'aws', home: '/home/ubuntu/svc' }, {})).toBeUndefined();
    const given = await fixture.provider.credentials({ provider: 'ssh', home: '/root/h' }, {});
    expect(given?.summary).toBe('keys of the AWS profile default');
    expect(given?.environment).toMatchObject({ AWS_SHARED_CREDENTIALS_FILE: '/root/h/aws/credentials' });
    expect(given?.files[0]?.content).toContain('[default]\naws_access_key_id = AKIA');
  });
});

test("the deploying home finds and removes a lost controller's machines in all regions", async () => {
  await withAwsProvider({}, async (fixture) => {
    const secretFor = async (target: ControllerTarget): Promise<string> => {
      const file = (await fixture.provider.credentials(target, {}))?.files.find(({ path }) => path === 'ssh/aws/secret');
      expect(file?.once).toBe(true);
      return file?.content ?? '';
    };
    const secret = await secretFor({ provider: 'ssh', home: '/h', key: 'c1' });
    expect(secret).toMatch(/^[0-9a-f]{64}\n$/);
    expect(await secretFor({ provider: 'aws', home: '/h', key: 'c1' })).toBe(secret);
    expect(await secretFor({ provider: 'aws', home: '/h', key: 'c2' })).not.toBe(secret);
    const tags = { 'svc-owner': 'c1', 'svc-service-key': 'one', 'svc-key': 'k1' };
    await withSecondAwsProvider(fixture, async (otherHome) => {
      mkdirSync(join(otherHome.paths.sshDir, 'aws'), { recursive: true });
      writeFileSync(join(otherHome.paths.sshDir, 'aws', 'secret'), secret);
      await otherHome.create('k1', { tags }, { region: 'eu-west-1' });
    });
    // A machine of another owner that uses the same tags.
    await withSecondAwsProvider(fixture, (other) => other.create('k2', { tags }, { region: 'us-west-2' }).then(() => undefined));

    const found = await fixture.provider.list({ 'svc-owner': 'c1' }, {});
    expect(found.map(({ id, tags: its }) => [id.split('/')[0], its])).toEqual([['eu-west-1', tags]]);
    expect(await fixture.provider.list({ 'svc-owner': 'c2' }, {})).toEqual([]);
    for (const { id } of found) await fixture.provider.destroy(id, {});
    await waitFor('everything to be released', () =>
      fixture.provider.release('c1', {}).then(
        () => true,
        () => false,
      ),
    );
    expect(new Set(fixture.aws.control.leftovers().map(({ region }) => region))).toEqual(new Set(['us-west-2']));

    fixture.aws.conduct.add({ action: 'DescribeInstances' }, { kind: 'error', code: 'AuthFailure', status: 401 });
    await expect(fixture.provider.list({ 'svc-owner': 'c2' }, {})).rejects.toMatchObject({ code: 'SVC_CREDENTIALS' });
  });
});
