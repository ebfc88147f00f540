import { ApiError } from '../wire/api-error.ts';

/** A refusal's HTTP status and message, as AWS sends them. */
interface CataloguedError {
  readonly status: number;
  readonly message: string;
}

/**
 * Errors that a test can inject by code alone. Statuses and messages follow
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html. As at AWS, lack of capacity is a server
 * error (5xx), which the SDK retries by itself.
 */
const errorCatalogue: Readonly<Record<string, CataloguedError>> = {
  AccessDenied: { status: 403, message: 'Access Denied' },
  AuthFailure: { status: 401, message: 'AWS was not able to validate the provided access credentials' },
  Blocked: {
    status: 400,
    message:
      'This account is currently blocked and not recognized as a valid account. Please contact aws-verification@amazon.com if you have questions.',
  },
  ExpiredToken: { status: 403, message: 'The security token included in the request is expired' },
  InstanceLimitExceeded: {
    status: 400,
    message:
      'You have requested more instances (1) than your current instance limit of 0 allows for the specified instance type. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.',
  },
  InsufficientAddressCapacity: { status: 500, message: 'Not enough available addresses to satisfy your minimum request.' },
  InsufficientFreeAddressesInSubnet: {
    status: 400,
    message: 'There are not enough free addresses in the subnet to satisfy the requested number of instances.',
  },
  InsufficientHostCapacity: { status: 500, message: 'There is insufficient capacity on your Dedicated Host to complete your request.' },
  InsufficientInstanceCapacity: { status: 500, message: 'There is no Spot capacity available that matches your request.' },
  InsufficientReservedInstanceCapacity: { status: 500, message: 'Insufficient capacity to satisfy your Reserved Instance request.' },
  InternalError: { status: 500, message: 'An internal error has occurred' },
  InvalidClientTokenId: { status: 403, message: 'The security token included in the request is invalid.' },
  MaxSpotInstanceCountExceeded: { status: 400, message: 'Max spot instance count exceeded' },
  OptInRequired: { status: 401, message: 'You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe.' },
  PendingVerification: {
    status: 400,
    message:
      'Your request for accessing resources in this region is being validated, and you will not be able to launch additional resources in this region until the validation is complete. We will notify you by email once your request has been validated.',
  },
  RequestExpired: { status: 400, message: 'Request has expired.' },
  RequestLimitExceeded: { status: 503, message: 'Request limit exceeded.' },
  ServiceUnavailable: { status: 503, message: 'The service is unavailable. Please try again shortly.' },
  SignatureDoesNotMatch: {
    status: 403,
    message:
      'The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.',
  },
  SlowDown: { status: 503, message: 'Please reduce your request rate.' },
  SpotMaxPriceTooLow: {
    status: 400,
    message: 'Your Spot request price of 0.001 is lower than the minimum required Spot request fulfillment price of 0.01.',
  },
  Throttling: { status: 400, message: 'Rate exceeded' },
  ThrottlingException: { status: 400, message: 'Rate exceeded' },
  Unavailable: { status: 503, message: 'The service is unavailable. Please try again shortly.' },
  UnauthorizedOperation: {
    status: 403,
    message:
      'You are not authorized to perform this operation. Encoded authorization failure message: fGVuY29kZWQtZmFpbHVyZS1tZXNzYWdlLW9mLXRoZS1lbXVsYXRvcg',
  },
  UnfulfillableCapacity: {
    status: 500,
    message: 'Unable to fulfill capacity due to your request configuration. Please adjust your request and try again.',
  },
  Unsupported: { status: 400, message: 'Your requested instance type is not supported in your requested Availability Zone.' },
  UnsupportedOperation: { status: 400, message: 'The operation is not supported.' },
  VcpuLimitExceeded: {
    status: 400,
    message:
      'You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.',
  },
  VolumeLimitExceeded: {
    status: 400,
    message: 'You have exceeded your maximum volume limit or your maximum gp3 storage limit in this region.',
  },
};

/** Returns the refusal of that code; message and status may be overridden. */
export function apiError(code: string, message?: string, status?: number): ApiError {
  const usual = errorCatalogue[code];
  return new ApiError(code, message ?? usual?.message ?? `The emulator was told to answer ${code}.`, status ?? usual?.status ?? 400);
}
