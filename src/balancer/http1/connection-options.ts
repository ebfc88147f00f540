import { isGuardedName } from './field-kinds.ts';
import { HT, isToken, SP } from './octets.ts';

/** What all `Connection` fields of one message say together. */
export interface ConnectionOptions {
  readonly close: boolean;
  readonly keepAlive: boolean;
  /** Lower-case names of the fields that are not for the peer after the next; undefined in the usual case that there are none. */
  readonly nominated: ReadonlySet<string> | undefined;
}

/** A message without the field. */
export const noConnectionOptions: ConnectionOptions = { close: false, keepAlive: false, nominated: undefined };
const closeOnly: ConnectionOptions = { close: true, keepAlive: false, nominated: undefined };
const keepAliveOnly: ConnectionOptions = { close: false, keepAlive: true, nominated: undefined };

/** Adds one more `Connection` field; undefined when it is malformed or nominates a guarded field. */
export function readConnectionField(value: string, before: ConnectionOptions): ConnectionOptions | undefined {
  if (before === noConnectionOptions) {
    if (value === 'keep-alive' || value === 'Keep-Alive') return keepAliveOnly;
    if (value === 'close') return closeOnly;
  }
  let { close, keepAlive } = before;
  const nominated = new Set(before.nominated);
  for (const element of value.split(',')) {
    const name = withoutBlanks(element).toLowerCase();
    if (name === '') continue;
    if (!isToken(name) || isGuardedName(name)) return undefined;
    if (name === 'close') close = true;
    else if (name === 'keep-alive') keepAlive = true;
    else nominated.add(name);
  }
  return { close, keepAlive, nominated: nominated.size === 0 ? undefined : nominated };
}

/** Not `trim`, which takes other octets for white space as well, such as the no-break space. */
function withoutBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(text, from)) from += 1;
  while (to > from && isBlank(text, to - 1)) to -= 1;
  return text.slice(from, to);
}

function isBlank(text: string, at: number): boolean {
  const octet = text.charCodeAt(at);
  return octet === SP || octet === HT;
}
