import type { Resources } from '../../domain/task.ts';

/** How images of containers are marked among those of machines. */
const mark = 'docker:';

/** The image for a context: what the task names for it, or the configured one; or why there is none, as a clause. */
export function chooseImage(
  imageId: Resources['imageId'],
  context: string,
  configured: string,
): { readonly image: string } | { readonly why: string } {
  const wanted = typeof imageId === 'object' ? (imageId[context] ?? imageId['*']) : imageId;
  if (imageId === undefined) return { image: configured };
  if (wanted === undefined) return { why: `image_id names no image for it (only for ${Object.keys(imageId).join(', ')})` };
  const image = wanted.startsWith(mark) ? wanted.slice(mark.length).replace(/^\/\//, '') : '';
  return image === '' ? { why: `takes images of containers only, and image_id is '${wanted}' (write docker:NAME)` } : { image };
}
