/**
 * Reads a record and writes a change derived from it. Repeats while another process writes in between: then the promise
 * of `write` gives undefined. `write` returns no promise when nothing is to change. Returns the written value, if any.
 */
export async function compareAndSwap<Seen, Written>(
  read: () => Promise<Seen | undefined>,
  write: (seen: Seen) => Promise<Written | undefined> | undefined,
): Promise<Written | undefined> {
  for (;;) {
    const seen = await read();
    const writing = seen === undefined ? undefined : write(seen);
    if (writing === undefined) return undefined;
    const written = await writing;
    if (written !== undefined) return written;
  }
}
