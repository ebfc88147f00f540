import * as buckets from './bucket-operations.ts';
import type { S3Exchange, S3Reply } from './exchange.ts';
import { deleteObjects, listObjects } from './listing.ts';
import * as multipart from './multipart.ts';
import * as objects from './object-operations.ts';
import type { S3Operation } from './routes.ts';

/** Implementations of the operations. */
export const operations: Readonly<Record<S3Operation, (exchange: S3Exchange) => S3Reply | Promise<S3Reply>>> = {
  ListBuckets: buckets.listBuckets,
  CreateBucket: buckets.createBucket,
  HeadBucket: buckets.headBucket,
  DeleteBucket: buckets.deleteBucket,
  GetBucketLocation: buckets.getLocation,
  PutBucketTagging: buckets.putTagging,
  GetBucketTagging: buckets.getTagging,
  DeleteBucketTagging: buckets.deleteTagging,
  PutPublicAccessBlock: buckets.putPublicAccess,
  GetPublicAccessBlock: buckets.getPublicAccess,
  PutBucketLifecycleConfiguration: buckets.putLifecycle,
  GetBucketLifecycleConfiguration: buckets.getLifecycle,
  ListObjectsV2: listObjects,
  DeleteObjects: deleteObjects,
  PutObject: objects.putObject,
  CopyObject: objects.copyObject,
  GetObject: objects.getObject,
  HeadObject: objects.headObject,
  DeleteObject: objects.deleteObject,
  CreateMultipartUpload: multipart.createUpload,
  UploadPart: multipart.uploadPart,
  CompleteMultipartUpload: multipart.completeUpload,
  AbortMultipartUpload: multipart.abortUpload,
  ListParts: multipart.listParts,
  ListMultipartUploads: multipart.listUploads,
};
