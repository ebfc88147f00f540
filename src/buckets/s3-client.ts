import { S3Client } from '@aws-sdk/client-s3';
import type { BucketPlace } from '../domain/bucket-place.ts';
import { envVar } from '../shared/env.ts';

/** The part of a place that S3 needs. */
export type S3Place = Extract<BucketPlace, { readonly kind: 's3' }>;

/** First try and repetitions of one call; the SDK repeats what may pass (throttling, 5xx, broken connections), with growing pauses. */
const maxAttempts = 5;
const connectionTimeoutMs = 10_000;
/** Without a byte in either direction. */
const silenceTimeoutMs = 120_000;

/** The address of a service that speaks S3's protocol instead of Amazon's own; the variables are those of AWS's tools. */
export function s3Endpoint(place: S3Place): string | undefined {
  return place.endpoint ?? envVar('AWS_ENDPOINT_URL_S3') ?? envVar('AWS_ENDPOINT_URL');
}

/** A client for one region. Credentials come from the SDK's default chain, or the profile. */
export function openS3Client(place: S3Place): S3Client {
  const endpoint = s3Endpoint(place);
  return new S3Client({
    region: place.region,
    maxAttempts,
    requestHandler: { connectionTimeout: connectionTimeoutMs, socketTimeout: silenceTimeoutMs },
    ...(place.profile === undefined ? {} : { profile: place.profile }),
    // Others know neither the newer checksums nor a host name for each bucket.
    ...(endpoint === undefined
      ? {}
      : {
          endpoint,
          forcePathStyle: true,
          requestChecksumCalculation: 'WHEN_REQUIRED' as const,
          responseChecksumValidation: 'WHEN_REQUIRED' as const,
        }),
  });
}
