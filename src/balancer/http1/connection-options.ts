import { isGuardedName } from './field-kinds.ts';
import { isToken } from './octets.ts';

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
    const name = element.trim().toLowerCase();
    if (name === '') continue;
    if (!isToken(name) || isGuardedName(name)) return undefined;
    if (name === 'close') close = true;
    else if (name === 'keep-alive') keepAlive = true;
    else nominated.add(name);
  }
  return { close, keepAlive, nominated: nominated.size === 0 ? undefined : nominated };
}
