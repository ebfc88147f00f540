/** A request to S3, parsed. */
export interface S3Target {
  readonly bucket: string | undefined;
  /** Decoded; undefined when the request addresses the bucket. */
  readonly key: string | undefined;
  readonly query: URLSearchParams;
}

const virtualHost = /^(.+?)\.(?:s3(?:[.-][a-z\d-]+)*\.amazonaws\.com|localhost)(?::\d+)?$/;

/** Finds bucket and key in the host name, or else in the path. */
export function targetOf(host: string, target: string): S3Target {
  const [path = '/', query = ''] = target.split(/\?(.*)/s, 2);
  const inHost = virtualHost.exec(host)?.[1];
  const [, first = '', rest] = /^\/([^/]*)(?:\/(.*))?$/s.exec(path) ?? [];
  const key = inHost === undefined ? rest : path.slice(1);
  const bucket = inHost ?? decodeURIComponent(first);
  return {
    bucket: bucket === '' ? undefined : bucket,
    key: key === undefined || key === '' ? undefined : decodeURIComponent(key),
    query: new URLSearchParams(query),
  };
}

type Level = 'service' | 'bucket' | 'object';

/**
 * The supported operations; of two matches the first one applies. `with` names required query parameters or a required
 * header.
 */
const table: readonly {
  readonly method: string;
  readonly level: Level;
  readonly with?: readonly string[];
  readonly header?: string;
  readonly name: S3Operation;
}[] = [
  { method: 'GET', level: 'service', name: 'ListBuckets' },
  { method: 'PUT', level: 'bucket', with: ['tagging'], name: 'PutBucketTagging' },
  { method: 'GET', level: 'bucket', with: ['tagging'], name: 'GetBucketTagging' },
  { method: 'DELETE', level: 'bucket', with: ['tagging'], name: 'DeleteBucketTagging' },
  { method: 'PUT', level: 'bucket', with: ['publicAccessBlock'], name: 'PutPublicAccessBlock' },
  { method: 'GET', level: 'bucket', with: ['publicAccessBlock'], name: 'GetPublicAccessBlock' },
  { method: 'PUT', level: 'bucket', with: ['lifecycle'], name: 'PutBucketLifecycleConfiguration' },
  { method: 'GET', level: 'bucket', with: ['lifecycle'], name: 'GetBucketLifecycleConfiguration' },
  { method: 'GET', level: 'bucket', with: ['location'], name: 'GetBucketLocation' },
  { method: 'GET', level: 'bucket', with: ['uploads'], name: 'ListMultipartUploads' },
  { method: 'GET', level: 'bucket', with: ['list-type'], name: 'ListObjectsV2' },
  { method: 'POST', level: 'bucket', with: ['delete'], name: 'DeleteObjects' },
  { method: 'PUT', level: 'bucket', name: 'CreateBucket' },
  { method: 'HEAD', level: 'bucket', name: 'HeadBucket' },
  { method: 'DELETE', level: 'bucket', name: 'DeleteBucket' },
  { method: 'POST', level: 'object', with: ['uploads'], name: 'CreateMultipartUpload' },
  { method: 'PUT', level: 'object', with: ['uploadId', 'partNumber'], name: 'UploadPart' },
  { method: 'POST', level: 'object', with: ['uploadId'], name: 'CompleteMultipartUpload' },
  { method: 'DELETE', level: 'object', with: ['uploadId'], name: 'AbortMultipartUpload' },
  { method: 'GET', level: 'object', with: ['uploadId'], name: 'ListParts' },
  { method: 'PUT', level: 'object', header: 'x-amz-copy-source', name: 'CopyObject' },
  { method: 'PUT', level: 'object', name: 'PutObject' },
  { method: 'GET', level: 'object', name: 'GetObject' },
  { method: 'HEAD', level: 'object', name: 'HeadObject' },
  { method: 'DELETE', level: 'object', name: 'DeleteObject' },
];

/** All emulated operations of S3. */
export type S3Operation =
  | 'ListBuckets'
  | 'PutBucketTagging'
  | 'GetBucketTagging'
  | 'DeleteBucketTagging'
  | 'PutPublicAccessBlock'
  | 'GetPublicAccessBlock'
  | 'PutBucketLifecycleConfiguration'
  | 'GetBucketLifecycleConfiguration'
  | 'GetBucketLocation'
  | 'ListMultipartUploads'
  | 'ListObjectsV2'
  | 'DeleteObjects'
  | 'CreateBucket'
  | 'HeadBucket'
  | 'DeleteBucket'
  | 'CreateMultipartUpload'
  | 'UploadPart'
  | 'CompleteMultipartUpload'
  | 'AbortMultipartUpload'
  | 'ListParts'
  | 'CopyObject'
  | 'PutObject'
  | 'GetObject'
  | 'HeadObject'
  | 'DeleteObject';

/** Query parameters that select another operation. An unknown one must not be treated as a plain GET or PUT. */
const subresources =
  'accelerate acl analytics cors encryption inventory legal-hold lifecycle location logging metrics notification object-lock ownershipControls policy policyStatus publicAccessBlock replication requestPayment restore retention select tagging torrent uploads uploadId versioning versions versionId website'.split(
    ' ',
  );

/** Returns the operation of a request; undefined when it is not emulated. */
export function operationOf(method: string, target: S3Target, header: (name: string) => string | undefined): S3Operation | undefined {
  const level: Level = target.bucket === undefined ? 'service' : target.key === undefined ? 'bucket' : 'object';
  const row = table.find(
    (one) =>
      one.method === method &&
      one.level === level &&
      (one.with ?? []).every((name) => target.query.has(name)) &&
      (one.header === undefined || header(one.header) !== undefined),
  );
  const strange = subresources.find((name) => target.query.has(name) && row?.with?.includes(name) !== true);
  return strange === undefined ? row?.name : undefined;
}
