import { ListMultipartUploadsCommand, ListPartsCommand, type MultipartUpload, type Part, type S3Client } from '@aws-sdk/client-s3';

/** An upload in parts, as S3's calls name it. */
export interface UploadId {
  readonly Bucket: string;
  readonly Key: string;
  readonly UploadId: string;
}

type Options = { readonly abortSignal?: AbortSignal };

/** Every unfinished upload whose key begins with `prefix`, page by page: the SDK has no paginator for this call. */
export async function* listUploads(client: S3Client, bucket: string, prefix: string, options: Options): AsyncGenerator<MultipartUpload> {
  let KeyMarker: string | undefined;
  let UploadIdMarker: string | undefined;
  for (;;) {
    const page = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, KeyMarker, UploadIdMarker }), options);
    yield* page.Uploads ?? [];
    if (page.IsTruncated !== true) return;
    KeyMarker = page.NextKeyMarker;
    UploadIdMarker = page.NextUploadIdMarker;
  }
}

/** Every part that has arrived. The SDK's paginator for this call goes on without end, as S3 gives a marker after the last page too. */
export async function* listParts(client: S3Client, upload: UploadId, options: Options): AsyncGenerator<Part> {
  let PartNumberMarker: string | undefined;
  for (;;) {
    const page = await client.send(new ListPartsCommand({ ...upload, PartNumberMarker }), options);
    yield* page.Parts ?? [];
    if (page.IsTruncated !== true) return;
    PartNumberMarker = page.NextPartNumberMarker;
  }
}
