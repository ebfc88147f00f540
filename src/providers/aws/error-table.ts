import type { RefusalKind, RefusalScope } from '../../domain/placement.ts';
import type { ErrorMeaning } from '../vm/errors.ts';

/** `offer`: the machine type in the requested zone, else in its region. */
const refusal = (
  kind: RefusalKind,
  about: RefusalScope | 'offer',
  codes: readonly string[],
): readonly (readonly [string, ErrorMeaning])[] => codes.map((code) => [code, { kind, about }]);
const failure = (kind: 'credentials' | 'failed', codes: readonly string[]): readonly (readonly [string, ErrorMeaning])[] =>
  codes.map((code) => [code, { kind }]);

/**
 * Codes of EC2 and related services. Source: "common errors" of each service, and
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
 */
const meanings: ReadonlyMap<string, ErrorMeaning> = new Map<string, ErrorMeaning>([
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
  // AWS counts machine quotas per family, and other quotas per region.
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
  // AWS answers AuthFailure even to valid credentials in a region that the account has not enabled.
  ['AuthFailure', { kind: 'permission', about: 'whole-region', isCredentialsError: true }],
  ...refusal('permission', 'whole-region', [
    'UnauthorizedOperation',
    'OptInRequired',
    'PendingVerification',
    'AccessDenied',
    'AccessDeniedException',
    'OperationNotPermitted',
    'SubscriptionRequiredException',
  ]),
  ...refusal('permission', 'provider', ['Blocked']),
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
    // An error of the SDK, before any request is sent.
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
    // Someone removed the group after the launch had found it. The next attempt makes it again.
    'InvalidGroup.NotFound',
    'InvalidSecurityGroupID.NotFound',
    'DependencyViolation',
    'IncorrectInstanceState',
    'IncorrectState',
  ]),
]);

/** An unknown code must neither stop the search nor cause endless retries: with status 4xx it refuses this offer. */
export function meaningOf(code: string, httpStatus: number | undefined): ErrorMeaning {
  const known = meanings.get(code);
  if (known !== undefined) return known;
  const isCallersFault = httpStatus !== undefined && httpStatus >= 400 && httpStatus < 500;
  if (code.endsWith('LimitExceeded')) return { kind: 'quota', about: 'whole-region' };
  return isCallersFault ? { kind: 'unsupported', about: 'offer' } : { kind: 'failed' };
}

/** Every code with its own row. */
export const knownCodes: readonly string[] = [...meanings.keys()];
