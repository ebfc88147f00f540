/**
 * How to access a bucket, as plain data. A provider returns it, and the code that copies files opens it.
 * - `s3`: Amazon S3 in a region, or with `endpoint` (an `https:` or `http:` address) any S3-compatible service.
 *   `profile` names credentials in the AWS SDK's own files.
 * - `directory`: a folder of this machine that holds one folder for each bucket.
 */
export type BucketLocation =
  | { readonly kind: 's3'; readonly region: string; readonly endpoint?: string | undefined; readonly profile?: string | undefined }
  | { readonly kind: 'directory'; readonly path: string };
