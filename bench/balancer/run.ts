import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withTempHome } from '../../test/support/temp-home.ts';
import { barsMarkdown } from './bars.ts';
import { readOptions } from './bench-options.ts';
import { allContestants, allWorkloads, named } from './lists.ts';
import { describeMachine } from './machine.ts';
import { sectionMarkdown } from './report.ts';
import type { Section } from './section.ts';
import type { Workload } from './workload.ts';

const options = readOptions(process.argv.slice(2));
const contestants = named(allContestants, options.only);
const workloads = named(allWorkloads, options.workloads);

function measure(workload: Workload): Promise<Section> {
  return withTempHome((home) => {
    const dir = join(home, workload.name);
    mkdirSync(dir);
    return workload.run({ ...options, dir, contestants });
  });
}

const parts: string[] = [];

function print(text: string): void {
  parts.push(text);
  console.log(`${text}\n`);
}

const sections = new Map<string, Section>();
print(
  `# The balancer beside HAProxy and nginx\n\nWritten by \`npm run bench:balancer -- --write\`; see [README.md](README.md) for what it means.`,
);
print(
  `${await describeMachine()}\n* ${options.rounds} rounds of ${options.seconds} s; medians, ratios in pairs with the least and the greatest`,
);
for (const workload of workloads) {
  try {
    const section = await measure(workload);
    sections.set(workload.name, section);
    print(sectionMarkdown(section));
  } catch (error) {
    // The results of the other workloads are still useful.
    console.error(`${workload.name} failed:`, error);
    process.exitCode = 1;
  }
}
print(`## Bars\n\n${barsMarkdown(sections)}`);
if (options.isWriting && sections.size === workloads.length) {
  writeFileSync(join(import.meta.dirname, 'RESULTS.md'), `${parts.join('\n\n')}\n`);
}
