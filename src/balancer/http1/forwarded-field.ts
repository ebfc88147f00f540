import { isAddressRange } from '../../shared/address-range.ts';

/** One hop of a `Forwarded` field: what a proxy wrote about its client. */
interface ForwardedHop {
  /** An IP address without port and brackets, or `unknown`. */
  readonly address: string;
  readonly proto: string | undefined;
  readonly host: string | undefined;
}

const pair = /[ \t]*([!#$%&'*+.^_`|~\dA-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~\dA-Za-z-]+))[ \t]*/y;

/**
 * The hops of all `Forwarded` fields of a message, from the client's side (RFC 7239, section 4). Undefined when any is
 * malformed, names a parameter twice, or has a `for` that is neither an address nor hidden.
 */
export function readForwarded(values: readonly string[]): readonly ForwardedHop[] | undefined {
  const text = values.join(',');
  const hops: ForwardedHop[] = [];
  let parameters = new Map<string, string>();
  for (let at = 0; ; at += 1) {
    pair.lastIndex = at;
    const found = pair.exec(text);
    if (found !== null) {
      const [whole, name = '', quoted, token = ''] = found;
      const key = name.toLowerCase();
      if (parameters.has(key)) return undefined;
      parameters.set(key, quoted === undefined ? token : quoted.replaceAll(/\\(.)/g, '$1'));
      at += whole.length;
    }
    const end = text[at];
    if (end === ';' || (found === null && (end === ' ' || end === '\t'))) continue;
    if (end !== ',' && end !== undefined) return undefined;
    // A list may have empty elements.
    const hop = parameters.size === 0 ? 'none' : hopOf(parameters);
    if (hop === undefined) return undefined;
    if (hop !== 'none') hops.push(hop);
    parameters = new Map();
    if (end === undefined) return hops;
  }
}

function hopOf(parameters: ReadonlyMap<string, string>): ForwardedHop | undefined {
  const address = addressOf(parameters.get('for') ?? 'unknown');
  return address === undefined ? undefined : { address, proto: parameters.get('proto'), host: parameters.get('host') };
}

/** A `for` without its port; hidden identifiers (`_name`) are unknown. */
function addressOf(node: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([\da-f:.]+)\]|([^:]+))(?::(?:\d{1,5}|_[\w.-]+))?$/i.exec(node) ?? [];
  if (bracketed !== undefined) return bracketed.includes(':') && isAddressRange(bracketed) ? bracketed : undefined;
  if (plain === undefined) return undefined;
  if (plain.toLowerCase() === 'unknown' || /^_[\w.-]+$/.test(plain)) return 'unknown';
  return !plain.includes('/') && isAddressRange(plain) ? plain : undefined;
}

/** The hop of a client with this IP address, as a proxy adds it. */
export function forwardedHop(address: string, proto: string): string {
  return `for=${address.includes(':') ? `"[${address}]"` : address};proto=${proto}`;
}
