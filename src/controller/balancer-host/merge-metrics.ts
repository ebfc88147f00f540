/** What one balancer told in the text format of Prometheus. */
export interface MemberMetrics {
  readonly member: string;
  readonly text: string;
}

interface Family {
  readonly head: string[];
  readonly samples: string[];
}

const headPattern = /^# (?:HELP|TYPE) (\S+)/;
const samplePattern = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (.+)$/;

/**
 * The metrics of several balancers as those of one program, as the format wants it: each family once, and each sample with the label `balancer`, by which they
 * are summed or told apart. Pure.
 */
export function mergeMetrics(all: readonly MemberMetrics[]): string {
  const families = new Map<string, Family>();
  for (const { member, text } of all) {
    let current: Family = { head: [], samples: [] };
    for (const line of text.split('\n')) {
      const name = headPattern.exec(line)?.[1];
      if (name !== undefined) {
        current = families.get(name) ?? { head: [], samples: [] };
        families.set(name, current);
        if (!current.head.includes(line)) current.head.push(line);
      } else if (line !== '' && !line.startsWith('#')) current.samples.push(labelled(line, member));
    }
  }
  return [...families.values()].flatMap(({ head, samples }) => [...head, ...samples].map((line) => `${line}\n`)).join('');
}

function labelled(sample: string, member: string): string {
  const [, name, labels, value] = samplePattern.exec(sample) ?? [];
  if (name === undefined || value === undefined) return sample;
  const own = `balancer="${member.replaceAll(/[\\"]/g, String.raw`\$&`)}"`;
  return `${name}{${labels === undefined || labels === '' ? own : `${own},${labels}`}} ${value}`;
}
