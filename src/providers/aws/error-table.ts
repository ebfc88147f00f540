import type { RefusalKind, RefusalScope } from '../../domain/placement.ts';

/** What an error code of AWS means: a refusal that another place may mend, or a failure. */
export type ErrorMeaning =
  | { readonly kind: RefusalKind; readonly about: RefusalScope | 'offer' }
  | { readonly kind: 'credentials' | 'failed' };

/** `offer`: the kind of machine that was asked for, in its zone when one was asked for, else in its region. */
const refusal = (
  kind: RefusalKind,
  about: RefusalScope | 'offer',
  codes: readonly string[],
): readonly (readonly [string, ErrorMeaning])[] => codes.map((code) => [code, { kind, about }]);
const failure = (kind: 'credentials' | 'failed', codes: readonly string[]): readonly (readonly [string, ErrorMeaning])[] =>
  codes.map((code) => [code, { kind }]);

/**
 * Codes of EC2, and of the services around it where they share one.
 * Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html and each service's "common errors".
 */
const meanings: ReadonlyMap<string, ErrorMeaning> = new Map([
  ...refusal('capacity', 'offer', [
    'InsufficientInstanceCapacity',
    'InsufficientHostCapacity',
    'InsufficientReservedInstanceCapacity',
    'InsufficientCapacity',
    'InsufficientCapacityOnHost',
    'InsufficientFreeAddressesInSubnet',
    'InsufficientVolumeCapacity',
    'ReservationCapacityExceeded',
    'UnfulfillableCapacity',
  ]),
  ...refusal('capacity', 'whole-region', ['InsufficientAddressCapacity']),
  ...refusal('price', 'offer', ['SpotMaxPriceTooLow']),
  // Quotas of machines are counted per family, those of everything beside a machine for the region.
  ...refusal('quota', 'region', ['InstanceLimitExceeded', 'VcpuLimitExceeded', 'MaxSpotInstanceCountExceeded', 'HostLimitExceeded']),
  ...refusal('quota', 'whole-region', [
    'VolumeLimitExceeded',
    'MaxIOPSLimitExceeded',
    'SecurityGroupLimitExceeded',
    'SecurityGroupsPerInstanceLimitExceeded',
    'SecurityGroupsPerInterfaceLimitExceeded',
    'RulesPerSecurityGroupLimitExceeded',
    'NetworkInterfaceLimitExceeded',
    'PrivateIpAddressLimitExceeded',
    'AddressLimitExceeded',
    'ResourceLimitExceeded',
    'ResourceCountLimitExceeded',
    'KeyPairLimitExceeded',
    'LimitExceeded',
  ]),
  ...refusal('unsupported', 'offer', [
    'Unsupported',
    'UnsupportedOperation',
    'UnsupportedInstanceAttribute',
    'UnsupportedTenancy',
    'UnsupportedInstanceTypeOnHost',
    'UnsupportedHostConfiguration',
    'InvalidAvailabilityZone',
    'InvalidInstanceType',
    'InvalidInput',
    'InvalidParameter',
    'InvalidParameterValue',
    'InvalidParameterCombination',
    'InvalidParameterDependency',
    'InvalidBlockDeviceMapping',
    'InvalidSubnet',
    'MissingParameter',
    'UnknownParameter',
    'UnknownVolumeType.Unsupported',
  ]),
  ...refusal('unsupported', 'whole-region', [
    'InvalidAMIID.NotFound',
    'InvalidAMIID.Malformed',
    'InvalidAMIID.Unavailable',
    'InvalidSubnetID.NotFound',
    'InvalidVpcID.NotFound',
    'DefaultVpcDoesNotExist',
    'VPCIdNotSpecified',
    'VPCResourceNotSpecified',
    'MissingInput',
  ]),
  // A region that the account has not enabled answers AuthFailure to credentials that are good elsewhere.
  ...refusal('permission', 'whole-region', [
    'UnauthorizedOperation',
    'AuthFailure',
    'OptInRequired',
    'PendingVerification',
    'AccessDenied',
    'AccessDeniedException',
    'OperationNotPermitted',
    'SubscriptionRequiredException',
  ]),
  ...refusal('permission', 'place', ['Blocked']),
  ...refusal('throttled', 'whole-region', [
    'RequestLimitExceeded',
    'Throttling',
    'ThrottlingException',
    'ThrottledException',
    'RequestThrottled',
    'RequestThrottledException',
    'TooManyRequestsException',
    'EC2ThrottledException',
    'SlowDown',
    'PriorRequestNotComplete',
    'BandwidthLimitExceeded',
  ]),
  ...failure('credentials', [
    'RequestExpired',
    'ExpiredToken',
    'ExpiredTokenException',
    'InvalidClientTokenId',
    'InvalidAccessKeyId',
    'InvalidSecurity',
    'InvalidToken',
    'IncompleteSignature',
    'SignatureDoesNotMatch',
    'UnrecognizedClientException',
    'MissingAuthenticationToken',
    'MissingAuthenticationTokenException',
    'UnauthorizedException',
    // Of the SDK itself, before anything is sent.
    'CredentialsProviderError',
    'TokenProviderError',
  ]),
  ...failure('failed', [
    'InternalError',
    'InternalFailure',
    'InternalServerError',
    'Unavailable',
    'ServiceUnavailable',
    'ServiceUnavailableException',
    'RequestTimeout',
    'RequestTimeoutException',
    'IdempotentParameterMismatch',
    'DependencyViolation',
    'IncorrectInstanceState',
    'IncorrectState',
  ]),
]);

/**
 * What a code means. One that is not known is a refusal of the very offer when AWS calls it the caller's fault (400 to 499), and else a failure
 * to ask again after: a new code must neither stop the search nor be asked for ever.
 */
export function meaningOf(code: string, httpStatus: number | undefined): ErrorMeaning {
  const known = meanings.get(code);
  if (known !== undefined) return known;
  const isCallersFault = httpStatus !== undefined && httpStatus >= 400 && httpStatus < 500;
  if (code.endsWith('LimitExceeded')) return { kind: 'quota', about: 'whole-region' };
  return isCallersFault ? { kind: 'unsupported', about: 'offer' } : { kind: 'failed' };
}

/** Every code that has a meaning of its own. */
export const knownCodes: readonly string[] = [...meanings.keys()];
