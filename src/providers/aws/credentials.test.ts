import { afterEach, expect, test, vi } from 'vitest';
import { portableCredentials } from './credentials.ts';

const keys = { accessKeyId: 'AKIA1', secretAccessKey: 'hidden', sessionToken: undefined, expiresAt: undefined };
const target = { provider: 'ssh', home: '/home/ann/.svc/controller/home' };

afterEach(() => {
  vi.unstubAllEnvs();
});

test("one profile's keys go into a file only, not into variables or the summary", () => {
  vi.stubEnv('AWS_ENDPOINT_URL', '');
  const { summary, files, environment } = portableCredentials(keys, 'work', target);
  expect(files).toEqual([{ path: 'aws/credentials', content: '[work]\naws_access_key_id = AKIA1\naws_secret_access_key = hidden\n' }]);
  expect(environment).toEqual({ AWS_SHARED_CREDENTIALS_FILE: `${target.home}/aws/credentials`, AWS_EC2_METADATA_DISABLED: 'true' });
  expect(summary).toBe('keys of the AWS profile work');
});

test('custom endpoints are passed to the controller', () => {
  vi.stubEnv('AWS_ENDPOINT_URL', 'http://10.0.0.1:4566');
  vi.stubEnv('AWS_ENDPOINT_URL_S3', 'http://10.0.0.2:9000');
  expect(portableCredentials(keys, undefined, target).environment).toMatchObject({
    AWS_ENDPOINT_URL: 'http://10.0.0.1:4566',
    AWS_ENDPOINT_URL_S3: 'http://10.0.0.2:9000',
  });
});
