import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { withAwsProvider, withEnv, type AwsProviderFixture } from '../../../test/support/aws-provider.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { checkCredentials } from './check.ts';

/** Runs without credentials in the environment and with the given files of the user. */
async function withFiles(
  files: { readonly config?: string; readonly credentials?: string },
  use: (fixture: AwsProviderFixture) => Promise<void>,
): Promise<void> {
  await withAwsProvider({}, (fixture) =>
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
      return withEnv(environment, () => use(fixture));
    }),
  );
}

test('valid credentials are reported with account and name', async () => {
  await withAwsProvider({}, async ({ provider }) => {
    expect(await provider.check({})).toMatchObject({ enabled: true, summary: 'Account 123456789012 as user/tester', remedies: [] });
  });
});

test('quotas are reported; a user without the right to read them stays enabled', async () => {
  await withAwsProvider({}, async ({ provider, aws }) => {
    aws.control.supply.setQuota({ quota: 'g' }, 0);
    const { details } = await provider.check({});
    expect(details).toContainEqual(['vCPUs allowed in us-east-1', '10000 standard, 0 G, 10000 P, 0 G on spot, 10000 P on spot']);
    aws.conduct.refuse({ service: 'servicequotas' }, 'AccessDenied');
    const without = await provider.check({});
    expect([without.enabled, without.details.length]).toEqual([true, details.length - 1]);
  });
});

test('without credentials no request is sent, and check explains how to get some', async () => {
  await withFiles({}, async ({ provider, aws }) => {
    const { enabled, summary, remedies } = await provider.check({});
    expect({ enabled, summary }).toEqual({ enabled: false, summary: expect.stringContaining('No credentials were found') });
    expect(remedies.join(' ')).toContain('aws configure');
    expect(aws.calls).toEqual([]);
  });
});

test('the profile that the configuration names is used', async () => {
  const keys = 'aws_access_key_id = AKIAFAKEAWSFORTESTS1\naws_secret_access_key = fake/secret+key/of/the/emulator0123456789\n';
  await withFiles({ credentials: `[work]\n${keys}` }, async (fixture) => {
    fixture.configure({ profile: 'work' });
    expect(await fixture.provider.check({})).toMatchObject({ enabled: true, details: expect.arrayContaining([['Profile', 'work']]) });
    fixture.configure({ profile: 'nobody' });
    expect(await fixture.provider.check({})).toMatchObject({
      enabled: false,
      summary: "There are no credentials in the profile 'nobody'.",
    });
  });
});

test('a wrong key is reported as wrong and is not shown', async () => {
  await withFiles(
    { credentials: '[default]\naws_access_key_id = AKIANOBODYHASTHISONE\naws_secret_access_key = xyz-secret\n' },
    async ({ provider }) => {
      const check = await provider.check({});
      expect(check).toMatchObject({ enabled: false, summary: expect.stringContaining('not valid') });
      expect(JSON.stringify(check)).not.toMatch(/AKIANOBODY|xyz-secret/);
    },
  );
});

test('keys in the environment override later changes to the credentials file', async () => {
  await withAwsProvider({}, async (fixture) => {
    expect((await fixture.provider.check({})).details).toContainEqual(['Credentials', 'AWS_ACCESS_KEY_ID in the environment']);
    await withEnv({ AWS_SECRET_ACCESS_KEY: 'xyz-secret' }, async () => {
      // `open()` stands for another process: a process's own environment does not change.
      expect(await fixture.open().check({})).toMatchObject({
        enabled: false,
        summary: expect.stringMatching(/^The credentials in the environment are not valid/),
        remedies: [expect.stringContaining('unset')],
      });
    });
  });
});

test('check names the profile that the environment sets', async () => {
  await withFiles({ config: '[default]\n' }, async ({ provider }) => {
    await withEnv({ AWS_PROFILE: 'nobody' }, async () => {
      expect((await provider.check({})).summary).toBe("There are no credentials in the profile 'nobody'.");
    });
  });
});

test('corrected keys take effect at the next check', async () => {
  const secret = 'aws_secret_access_key = fake/secret+key/of/the/emulator0123456789\n';
  await withFiles({ credentials: `[default]\naws_access_key_id = AKIANOBODYHASTHISONE\n${secret}` }, async ({ provider }) => {
    expect((await provider.check({})).enabled).toBe(false);
    const file = process.env['AWS_SHARED_CREDENTIALS_FILE'] ?? '';
    writeFileSync(file, `[default]\naws_access_key_id = AKIAFAKEAWSFORTESTS1\n${secret}`);
    utimesSync(file, 1, 1);
    expect((await provider.check({})).enabled).toBe(true);
  });
});

test('a missing or expired SSO login is reported with the login command', async () => {
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
  await withFiles({ config }, async (fixture) => {
    fixture.configure({ profile: 'sso' });
    expect(await fixture.provider.check({})).toMatchObject({ enabled: false, remedies: ['Run: aws sso login --profile sso'] });
  });
});

test('expired keys and wrong keys have different messages', async () => {
  await withAwsProvider({}, async ({ provider, aws }) => {
    aws.conduct.refuse({ service: 'sts' }, 'ExpiredToken');
    expect(await provider.check({})).toMatchObject({ enabled: false, summary: 'The credentials in the environment have expired.' });
  });
});

test('an unreachable AWS is reported as unreachable', async () => {
  await withAwsProvider({}, async ({ provider }) => {
    // No server can listen on this port.
    await withEnv({ AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }, async () => {
      expect(await provider.check({})).toMatchObject({ enabled: false, summary: expect.stringContaining('AWS cannot be asked') });
    });
  });
});

test('slow quotas do not delay a check; the next check shows them', async () => {
  const clock = new FakeClock();
  await withAwsProvider({ clock }, async ({ provider, aws }) => {
    aws.conduct.add({ service: 'servicequotas' }, { kind: 'delay', ms: 12_000 });
    const first = await provider.check({ factsMs: 50 });
    expect(first.enabled).toBe(true);
    expect(first.details).toContainEqual(['vCPUs allowed in us-east-1', 'not known yet: Service Quotas did not answer within 0.05 s']);
    await waitFor('all quotas to be asked for', () => clock.pendingTimers >= 5);
    const second = provider.check({ factsMs: 20_000 });
    await clock.advance(12_000);
    expect((await second).details).toContainEqual(['vCPUs allowed in us-east-1', expect.stringMatching(/^\d+ standard, /)]);
    // The second check used the calls of the first one.
    expect(aws.calls.filter(({ service }) => service === 'servicequotas')).toHaveLength(5);
  });
});

test('an AWS that accepts connections but never answers counts as slow', async () => {
  // The SDK gives up after twice 15 s, with this error.
  const silent = { callerIdentity: () => Promise.reject(Object.assign(new Error('socket hang up'), { name: 'TimeoutError' })) };
  const check = checkCredentials(silent, 'us-east-1', { kind: 'environment' }, async () => undefined, undefined);
  expect(await check).toMatchObject({ enabled: false, summary: 'AWS did not answer in time.', slow: expect.any(String) });
});
