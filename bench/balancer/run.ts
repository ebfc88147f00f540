import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { withTempHome } from '../../test/support/temp-home.ts';
import { readOptions } from './bench-options.ts';
import type { Contestant } from './contestant.ts';
import { haproxy } from './contestants/haproxy.ts';
import { nginx } from './contestants/nginx.ts';
import { raw } from './contestants/raw.ts';
import { svc } from './contestants/svc.ts';
import { sectionMarkdown } from './report.ts';
import type { Workload } from './workload.ts';
import { eventsWorkload } from './workloads/events.ts';
import { requestWorkloads } from './workloads/requests.ts';

const allContestants: readonly Contestant[] = [svc, haproxy, nginx, raw];
const allWorkloads: readonly Workload[] = [...requestWorkloads, eventsWorkload];

/** Those with the names given, or all when none is given; throws when there is no such name. */
function named<Item extends { readonly name: string }>(items: readonly Item[], names: readonly string[]): readonly Item[] {
  if (names.length === 0) return items;
  return names.map((name) => {
    const found = items.find((item) => item.name === name);
    if (found === undefined) throw new Error(`There is no ${name}; there are ${items.map((item) => item.name).join(', ')}`);
    return found;
  });
}

const options = readOptions(process.argv.slice(2));
const contestants = named(allContestants, options.only);

for (const workload of named(allWorkloads, options.workloads)) {
  const { rounds, seconds, profileDir } = options;
  const section = await withTempHome((home) => {
    const dir = join(home, workload.name);
    mkdirSync(dir);
    return workload.run({ dir, contestants, rounds, seconds, profileDir });
  });
  console.log(sectionMarkdown(section));
}
