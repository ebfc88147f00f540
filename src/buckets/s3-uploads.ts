import { ListMultipartUploadsCommand, type MultipartUpload, type S3Client } from '@aws-sdk/client-s3';

/** Every unfinished upload whose key begins with `prefix`, page by page: the SDK has no paginator for this call. */
export async function* listUploads(
  client: S3Client,
  bucket: string,
  prefix: string,
  options: { readonly abortSignal?: AbortSignal },
): AsyncGenerator<MultipartUpload> {
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
