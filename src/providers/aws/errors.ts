import { SvcError, type ErrorDetails } from '../../shared/errors.ts';
import { isObject } from '../../shared/is-object.ts';
import { PlaceRefusal } from '../place-refusal.ts';
import type { Offer } from '../provider.ts';
import { meaningOf, type ErrorMeaning } from './error-table.ts';

/** AWS's own code of an error, such as `VcpuLimitExceeded`; undefined for what does not come from AWS. */
export function awsCode(error: unknown): string | undefined {
  return error instanceof Error && isObject(Object.getOwnPropertyDescriptor(error, '$metadata')?.value) ? error.name : undefined;
}

/** Whether AWS answered with one of the codes. */
export function hasAwsCode(error: unknown, ...codes: readonly string[]): boolean {
  const code = awsCode(error);
  return code !== undefined && codes.includes(code);
}

/** An error of `create` as what the search for a place does next. Errors that are ours already pass. */
export function refusalOf(error: unknown, offer: Offer): unknown {
  const { code, meaning, text } = read(error);
  if (meaning === undefined) return error;
  const where = `${offer.region}${offer.zone === undefined ? '' : ` (zone ${offer.zone})`}`;
  const message = `AWS gives no ${offer.instanceType}${offer.spot ? ' as spot' : ''} in ${where}: ${text} (${code})`;
  if (!('about' in meaning)) return failureOf(error, `ask for ${offer.instanceType} in ${where}`);
  const scope = meaning.about === 'offer' ? (offer.zone === undefined ? 'region' : 'zone') : meaning.about;
  return new PlaceRefusal(meaning.kind, scope, message, detailsFor(meaning, code, error));
}

/** An error of any other call, with what was tried, as in `list machines in us-east-1`. Errors that are ours already pass. */
export function failureOf(error: unknown, doing: string): unknown {
  const { code, meaning, text } = read(error);
  if (meaning === undefined) return error;
  const message = `AWS would not ${doing}: ${text} (${code})`;
  const details = detailsFor(meaning, code, error);
  if (meaning.kind === 'credentials' || code === 'AuthFailure') return new SvcError('SVC_CREDENTIALS', message, details);
  if (meaning.kind === 'permission') return new SvcError('SVC_DENIED', message, details);
  if (meaning.kind === 'throttled') return new SvcError('SVC_THROTTLED', message, details);
  if (meaning.kind === 'capacity') return new SvcError('SVC_CAPACITY', message, details);
  return new SvcError('SVC_PLACE_FAILED', message, details);
}

const quotaHint = 'Ask for more in the Service Quotas console of that region, or use another place.';

function detailsFor(meaning: ErrorMeaning, code: string, cause: unknown): ErrorDetails {
  // AWS's own error carries request headers: it stays out of logs.
  const details = { cause: new Error(`${code}: ${textOf(cause)}`) };
  if (meaning.kind === 'quota') return { ...details, hint: quotaHint };
  if (code === 'RequestExpired') return { ...details, hint: 'Renew the credentials, and check that the clock of this machine is right.' };
  if (code === 'OptInRequired') return { ...details, hint: 'Enable the region, or accept the terms of the image, in the AWS console.' };
  if (meaning.kind === 'permission') return { ...details, hint: 'Give the rights that docs/clouds/aws.md lists.' };
  return details;
}

/**
 * Whether a request that bears a token may be sent again at once: AWS did not get to it, or nobody knows whether it did. A want of capacity, which
 * comes with a status of 500 as well, is no such case.
 */
export function isWorthRepeating(error: unknown): boolean {
  const { meaning, status } = read(error);
  return meaning?.kind === 'throttled' || (meaning?.kind === 'failed' && (status === undefined || status >= 500));
}

interface ReadError {
  readonly code: string;
  readonly meaning: ErrorMeaning | undefined;
  readonly status: number | undefined;
  readonly text: string;
}

const notOfAws: ReadError = { code: '', meaning: undefined, status: undefined, text: '' };

function read(error: unknown): ReadError {
  if (error instanceof SvcError || !(error instanceof Error)) return notOfAws;
  // Whoever cancelled wants to see that and no failure.
  if (error.name === 'AbortError' || error.name === 'TypeError' || error.name === 'RangeError') return notOfAws;
  const metadata: unknown = Object.getOwnPropertyDescriptor(error, '$metadata')?.value;
  const status = isObject(metadata) && typeof metadata['httpStatusCode'] === 'number' ? metadata['httpStatusCode'] : undefined;
  const code = 'code' in error && typeof error.code === 'string' && error.name === 'Error' ? error.code : error.name;
  return { code, meaning: meaningOf(code, status), status, text: textOf(error) };
}

const maxTextLength = 300;

/** AWS's sentence without the encoded part of a denial, which is long and tells of policies, and without its full stop. */
function textOf(error: unknown): string {
  const whole = error instanceof Error ? error.message : String(error);
  const [plain = ''] = whole.split(/\s*Encoded authorization failure message/);
  const line = plain.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
  if (line === '') return 'no reason given';
  return line.length > maxTextLength ? `${line.slice(0, maxTextLength)}…` : line;
}
