import type { Resources } from '../../domain/task.ts';

/** Prefix that distinguishes container images from machine images. */
const mark = 'docker:';

/** The image for a context: the task's image for it, or the configured one. Without either, the reason as a clause. */
export function chooseImage(
  imageId: Resources['imageId'],
  context: string,
  configured: string,
): { readonly image: string } | { readonly why: string } {
  const requested = typeof imageId === 'object' ? (imageId[context] ?? imageId['*']) : imageId;
  if (imageId === undefined) return { image: configured };
  if (requested === undefined) return { why: `image_id names no image for it (only for ${Object.keys(imageId).join(', ')})` };
  const image = requested.startsWith(mark) ? requested.slice(mark.length).replace(/^\/\//, '') : '';
  return image === '' ? { why: `takes images of containers only, and image_id is '${requested}' (write docker:NAME)` } : { image };
}
