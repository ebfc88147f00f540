import { z } from 'zod';
import { reading, type Reading } from './kit.ts';

const form = 'must be a port, or a range FROM-TO with FROM not greater than TO\nWrite for instance: ports: 8080 or ports: 8000-8010';
const outside = 'ports are numbers from 1 to 65535';

interface PortRange {
  readonly from: number;
  readonly to: number;
}

function readPorts(value: string | number): Reading<PortRange> {
  const match = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(String(value).replaceAll(' ', ''));
  if (match === null) return { problem: typeof value === 'number' ? outside : form };
  const from = Number(match[1]);
  const to = Number(match[2] ?? match[1]);
  if (from > to) return { problem: form };
  return from < 1 || to > 65_535 ? { problem: outside } : { ok: { from, to } };
}

const one = reading(z.union([z.number(), z.string()]), readPorts);

/** `8080`, `"8080"`, `8000-8010`, or a list of these: every port, ascending, each once. */
export const ports = reading(z.union([one, z.array(one).max(100)]), (given): Reading<readonly number[]> => {
  const found: number[] = [];
  for (const { from, to } of [given].flat().toSorted((a, b) => a.from - b.from)) {
    for (let port = Math.max(from, (found.at(-1) ?? 0) + 1); port <= to; port += 1) found.push(port);
  }
  return { ok: found };
});
