/**
 * Where a bucket is and how to get at it, as plain data: a place says it, whoever moves files opens it. `s3` is Amazon's S3 in a region, or with
 * `endpoint` (an `https:` or `http:` address) any service that speaks its protocol; `profile` names credentials of the AWS SDK's own files.
 * `directory` is a folder of this machine that holds one folder for each bucket.
 */
export type BucketPlace =
  | { readonly kind: 's3'; readonly region: string; readonly endpoint?: string | undefined; readonly profile?: string | undefined }
  | { readonly kind: 'directory'; readonly path: string };
