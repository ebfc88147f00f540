/** Causes that say more than what comes after them, or than the last words alone. */
const telling = [
  /pull access denied/i,
  /no match for platform in manifest/i,
  /toomanyrequests/i,
  /authentication required/i,
  /requested access to the resource is denied/i,
];

/** What is no cause: the name of what failed, where it was asked for, and words that only lead to the next. */
const needless = /^(?:https?:\/\/\S*|rpc error|server message|Error|ErrImagePull|code = \w+|Back-off pulling image .*)$/i;

/** The words before a cause that is in the same part of a sentence. */
const preface = /^(?:code = \w+ desc = |lookup \S+(?: on \S+)? ?)/;

/**
 * The innermost cause of an image not being fetched, once, out of all that the runtime, its client and the registry wrapped around it; undefined when nothing
 * but the failure itself is told.
 */
export function pullCause(said: string | undefined, image: string | undefined): string | undefined {
  const parts = (said ?? '')
    .replaceAll(/\s*\n\s*/g, ': ')
    .replaceAll(/\s+/g, ' ')
    .split(/: (?!\/\/)/)
    .map((part) => part.trim().replace(preface, '').replace(/[.]$/, ''))
    .filter((part) => part !== '' && part !== image && !needless.test(part) && !isAboutImage(part));
  return parts.find((part) => telling.some((pattern) => pattern.test(part))) ?? parts.at(-1);
}

/** `Failed to pull image "a:1"`, `failed to resolve reference "a:1"`, `docker.io/library/a:1`: which image it is, is said already. */
function isAboutImage(part: string): boolean {
  return /^failed to \w+(?: and \w+)?(?: \w+)* "[^"]*"$/i.test(part) || /^[\w.-]+(?::\d+)?\/[\w./-]+(?::[\w.-]+)?(?:@sha256)?$/.test(part);
}

/** Whether the registry has answered, and will answer the same again; where it did not, it may do so elsewhere, or later. */
export function isDefiniteAnswer(said: string | undefined): boolean {
  return definite.test(said ?? '');
}

const definite =
  /not found|manifest unknown|unauthorized|authentication required|denied|does not exist|forbidden|\b40[134]\b|invalid reference|no match for platform/i;
