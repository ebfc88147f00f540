import { isObject } from '../../shared/json.ts';
import { CloudErrors, type ReportedError } from '../vm/errors.ts';
import { meaningOf } from './error-table.ts';

/** AWS's code, such as `VcpuLimitExceeded`; undefined for other errors. */
export function awsCode(error: unknown): string | undefined {
  return error instanceof Error && isObject(Object.getOwnPropertyDescriptor(error, '$metadata')?.value) ? error.name : undefined;
}

/** Whether AWS answered with one of the codes. */
export function hasAwsCode(error: unknown, ...codes: readonly string[]): boolean {
  const code = awsCode(error);
  return code !== undefined && codes.includes(code);
}

/** As `hasAwsCode`, for `whileNotYet`. */
export function awsCodes(...codes: readonly string[]): (error: unknown) => boolean {
  return (error) => hasAwsCode(error, ...codes);
}

/** Every error of an AWS call counts as AWS's. A connection error has a Node code and no `$metadata`. */
function read(error: Error): ReportedError {
  const metadata: unknown = Object.getOwnPropertyDescriptor(error, '$metadata')?.value;
  const status = isObject(metadata) && typeof metadata['httpStatusCode'] === 'number' ? metadata['httpStatusCode'] : undefined;
  const code = 'code' in error && typeof error.code === 'string' && error.name === 'Error' ? error.code : error.name;
  // The encoded part of a denial is long and reveals policies.
  const [text = ''] = error.message.split(/\s*Encoded authorization failure message/);
  return { code, status, text };
}

/** Translates AWS's errors into provider errors. */
export const awsErrors = new CloudErrors('AWS', {
  read,
  meaningOf,
  hintFor({ code }, { kind }) {
    if (kind === 'quota') return 'Ask for more in the Service Quotas console of that region, or use another provider.';
    if (code === 'RequestExpired') return 'Renew the credentials, and check that the clock of this machine is right.';
    if (code === 'OptInRequired') return 'Enable the region, or accept the terms of the image, in the AWS console.';
    return kind === 'permission' ? 'Give the rights that docs/clouds/aws.md lists.' : undefined;
  },
});
