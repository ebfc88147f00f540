import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withAwsPlace, withEnv, type AwsPlace } from '../../../test/support/aws-place.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';

/** No credentials in the environment; what the user has in files is as given. */
async function withFiles(
  files: { readonly config?: string; readonly credentials?: string },
  use: (place: AwsPlace) => Promise<void>,
): Promise<void> {
  await withAwsPlace({}, (place) =>
    withTempHome((home) => {
      const path = (name: 'config' | 'credentials'): string => {
        const content = files[name];
        if (content !== undefined) writeFileSync(join(home, name), content);
        return join(home, name);
      };
      const environment = {
        HOME: home,
        AWS_ACCESS_KEY_ID: undefined,
        AWS_SECRET_ACCESS_KEY: undefined,
        AWS_CONFIG_FILE: path('config'),
        AWS_SHARED_CREDENTIALS_FILE: path('credentials'),
      };
      return withEnv(environment, () => use(place));
    }),
  );
}

test('good credentials are told with their account and name', async () => {
  await withAwsPlace({}, async ({ provider }) => {
    expect(await provider.check({})).toMatchObject({ enabled: true, summary: 'Account 123456789012 as user/tester', remedies: [] });
  });
});

test('quotas that are in the way are told beforehand, and whoever may not ask for them is enabled all the same', async () => {
  await withAwsPlace({}, async ({ provider, aws }) => {
    aws.control.supply.setQuota({ quota: 'g' }, 0);
    const { details } = await provider.check({});
    expect(details).toContainEqual(['vCPUs allowed in us-east-1', '10000 standard, 0 G, 10000 P, 0 G on spot, 10000 P on spot']);
    aws.conduct.refuse({ service: 'servicequotas' }, 'AccessDenied');
    const without = await provider.check({});
    expect([without.enabled, without.details.length]).toEqual([true, details.length - 1]);
  });
});

test('without any credentials nobody is asked, and it is said how to get some', async () => {
  await withFiles({}, async ({ provider, aws }) => {
    const { enabled, summary, remedies } = await provider.check({});
    expect({ enabled, summary }).toEqual({ enabled: false, summary: expect.stringContaining('No credentials were found') });
    expect(remedies.join(' ')).toContain('aws configure');
    expect(aws.calls).toEqual([]);
  });
});

test('a profile is used when the configuration names it', async () => {
  const keys = 'aws_access_key_id = AKIAFAKEAWSFORTESTS1\naws_secret_access_key = fake/secret+key/of/the/emulator0123456789\n';
  await withFiles({ credentials: `[work]\n${keys}` }, async (place) => {
    place.configure({ profile: 'work' });
    expect(await place.provider.check({})).toMatchObject({ enabled: true, details: expect.arrayContaining([['Profile', 'work']]) });
    place.configure({ profile: 'nobody' });
    expect(await place.provider.check({})).toMatchObject({ enabled: false, summary: "There are no credentials in the profile 'nobody'." });
  });
});

test('a wrong key is said to be wrong, and is not shown', async () => {
  await withFiles(
    { credentials: '[default]\naws_access_key_id = AKIANOBODYHASTHISONE\naws_secret_access_key = xyz-secret\n' },
    async ({ provider }) => {
      const check = await provider.check({});
      expect(check).toMatchObject({ enabled: false, summary: expect.stringContaining('not valid') });
      expect(JSON.stringify(check)).not.toMatch(/AKIANOBODY|xyz-secret/);
    },
  );
});

test('keys of the environment are named as such: what is written to files makes no difference to them', async () => {
  await withAwsPlace({}, async (place) => {
    expect((await place.provider.check({})).details).toContainEqual(['Credentials', 'AWS_ACCESS_KEY_ID in the environment']);
    await withEnv({ AWS_SECRET_ACCESS_KEY: 'xyz-secret' }, async () => {
      // Another process: what is in its own environment does not change.
      expect(await place.open().check({})).toMatchObject({
        enabled: false,
        summary: expect.stringMatching(/^The credentials in the environment are not valid/),
        remedies: [expect.stringContaining('unset')],
      });
    });
  });
});

test('a profile that the environment names is the one that is spoken of', async () => {
  await withFiles({ config: '[default]\n' }, async ({ provider }) => {
    await withEnv({ AWS_PROFILE: 'nobody' }, async () => {
      expect((await provider.check({})).summary).toBe("There are no credentials in the profile 'nobody'.");
    });
  });
});

test('keys that the user puts right count at once', async () => {
  const secret = 'aws_secret_access_key = fake/secret+key/of/the/emulator0123456789\n';
  await withFiles({ credentials: `[default]\naws_access_key_id = AKIANOBODYHASTHISONE\n${secret}` }, async ({ provider }) => {
    expect((await provider.check({})).enabled).toBe(false);
    const file = process.env['AWS_SHARED_CREDENTIALS_FILE'] ?? '';
    writeFileSync(file, `[default]\naws_access_key_id = AKIAFAKEAWSFORTESTS1\n${secret}`);
    utimesSync(file, 1, 1);
    expect((await provider.check({})).enabled).toBe(true);
  });
});

test('an SSO login that was never made or has expired names the command', async () => {
  const config = [
    '[profile sso]',
    'sso_session = corp',
    'sso_account_id = 123456789012',
    'sso_role_name = dev',
    '[sso-session corp]',
    'sso_region = us-east-1',
    'sso_start_url = https://example.awsapps.com/start',
    '',
  ].join('\n');
  await withFiles({ config }, async (place) => {
    place.configure({ profile: 'sso' });
    expect(await place.provider.check({})).toMatchObject({ enabled: false, remedies: ['Run: aws sso login --profile sso'] });
  });
});

test('expired keys are told from wrong ones', async () => {
  await withAwsPlace({}, async ({ provider, aws }) => {
    aws.conduct.refuse({ service: 'sts' }, 'ExpiredToken');
    expect(await provider.check({})).toMatchObject({ enabled: false, summary: 'The credentials in the environment have expired.' });
  });
});

test('an AWS that cannot be reached is said to be that', async () => {
  await withAwsPlace({}, async ({ provider }) => {
    // A port that nobody can listen on.
    await withEnv({ AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }, async () => {
      expect(await provider.check({})).toMatchObject({ enabled: false, summary: expect.stringContaining('AWS cannot be asked') });
    });
  });
});
