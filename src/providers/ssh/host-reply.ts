/** An SSH host's reply: the values of each name, in order. */
export type HostReply = ReadonlyMap<string, readonly string[]>;

/** First line of a reply; the user's login scripts may print lines above it. */
const begin = 'svc-host=1';

/**
 * Parses the reply in the output of `src/node/host.sh`; undefined when there is none. A reply that was cut short has no
 * `result`.
 */
export function parseHostReply(output: string): HostReply | undefined {
  const lines = output.split('\n');
  const start = lines.lastIndexOf(begin);
  if (start < 0) return undefined;
  const reply = new Map<string, string[]>();
  for (const line of lines.slice(start + 1)) {
    const at = line.indexOf('=');
    if (at < 1) continue;
    const name = line.slice(0, at);
    const values = reply.get(name) ?? [];
    reply.set(name, values);
    values.push(line.slice(at + 1));
  }
  return reply;
}

/** The only value of a name; undefined when it is missing or empty. */
export function valueOf(reply: HostReply, name: string): string | undefined {
  const value = reply.get(name)?.[0]?.trim();
  return value === '' ? undefined : value;
}
