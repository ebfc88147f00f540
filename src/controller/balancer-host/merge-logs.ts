/** The log of one balancer, as it comes. */
export interface MemberLog {
  readonly member: string;
  readonly pieces: AsyncIterable<Buffer>;
}

const newline = 10;

/** Logs of several balancers as one: line by line, each with the name of its balancer before it, in the order in which they come. */
export async function* mergeLogs(logs: readonly MemberLog[]): AsyncGenerator<Buffer> {
  const waiting = new Map<number, Promise<{ readonly index: number; readonly next: IteratorResult<Buffer> }>>();
  const lines = logs.map((log) => memberLines(log));
  const ask = (index: number): void => {
    const one = lines[index];
    if (one !== undefined)
      waiting.set(
        index,
        one.next().then((next) => ({ index, next })),
      );
  };
  for (const index of lines.keys()) ask(index);
  try {
    while (waiting.size > 0) {
      const { index, next } = await Promise.race(waiting.values());
      waiting.delete(index);
      if (next.done === true) continue;
      ask(index);
      yield next.value;
    }
  } finally {
    for (const one of lines) void one.return(undefined).catch(() => undefined);
  }
}

/** Whole lines, as many as came at once; one that breaks off says so in a line of its own. */
async function* memberLines({ member, pieces }: MemberLog): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const piece of pieces) {
      const read = Buffer.concat([rest, piece]);
      const end = read.lastIndexOf(newline) + 1;
      rest = read.subarray(end);
      if (end > 0) yield withName(member, read.toString('utf8', 0, end - 1));
    }
    if (rest.length > 0) yield withName(member, rest.toString('utf8'));
  } catch {
    yield withName(member, '(the log breaks off: this balancer does not answer any more)');
  }
}

function withName(member: string, text: string): Buffer {
  return Buffer.from(
    text
      .split('\n')
      .map((line) => `[${member}] ${line}\n`)
      .join(''),
  );
}
