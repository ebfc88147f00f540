/** Causes that are more specific than the text after them, or than the last part alone. */
const specificCauses = [
  /pull access denied/i,
  /no match for platform in manifest/i,
  /toomanyrequests/i,
  /authentication required/i,
  /requested access to the resource is denied/i,
];

/**
 * Parts that are no cause: the name of the failed step, the requested address, and words that only introduce the next
 * part.
 */
const needless = /^(?:https?:\/\/\S*|rpc error|server message|Error|ErrImagePull|code = \w+|Back-off pulling image .*)$/i;

/** Words that precede a cause within the same part of a message. */
const preface = /^(?:code = \w+ desc = |lookup \S+(?: on \S+)? ?)/;

/**
 * The innermost cause of a failed image pull, without the text that the runtime, its client and the registry wrap
 * around it. Undefined when the message reports only the failure itself.
 */
export function pullCause(said: string | undefined, image: string | undefined): string | undefined {
  const parts = (said ?? '')
    .replaceAll(/\s*\n\s*/g, ': ')
    .replaceAll(/\s+/g, ' ')
    .split(/: (?!\/\/)/)
    .map((part) => part.trim().replace(preface, '').replace(/[.]$/, ''))
    .filter((part) => part !== '' && part !== image && !needless.test(part) && !isAboutImage(part));
  return parts.find((part) => specificCauses.some((pattern) => pattern.test(part))) ?? parts.at(-1);
}

/**
 * Whether a part only repeats the image's name, which the message shows already: `Failed to pull image "a:1"`, `failed
 * to resolve reference "a:1"`, `docker.io/library/a:1`.
 */
function isAboutImage(part: string): boolean {
  return /^failed to \w+(?: and \w+)?(?: \w+)* "[^"]*"$/i.test(part) || /^[\w.-]+(?::\d+)?\/[\w./-]+(?::[\w.-]+)?(?:@sha256)?$/.test(part);
}

/**
 * Whether the registry answered and a retry would get the same answer. Without an answer, a pull on another node or
 * later may succeed.
 */
export function isDefiniteAnswer(said: string | undefined): boolean {
  return definite.test(said ?? '');
}

const definite =
  /not found|manifest unknown|unauthorized|authentication required|denied|does not exist|forbidden|\b40[134]\b|invalid reference|no match for platform/i;
