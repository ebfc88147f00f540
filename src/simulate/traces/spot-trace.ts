import { SvcError } from '../../shared/errors.ts';
import type { SpotTrace } from '../spot-fleet.ts';

/** More steps than half a year of minutes are no trace but a mistake. */
const maxSteps = 300_000;

/**
 * Reads the spot capacity of zones over time: `{"gap_seconds", "zones": […], "capacity": [[replicas per step]…]}`, with
 * one list of steps for each zone. `name` and `prices` (US dollars per step for each zone, or null) are optional. Throws
 * SVC_BAD_TRACE.
 */
export function readSpotTrace(file: string, text: string): SpotTrace {
  const root = objectOf(parseJson(file, text));
  const fault = (expected: string): SvcError =>
    new SvcError('SVC_BAD_TRACE', `The spot trace ${file} cannot be read: expected ${expected}.`, {
      hint: 'A spot trace is {"gap_seconds": 300, "zones": ["us-east-1a"], "capacity": [[4, 4, 0]]}.',
    });
  if (root === undefined) throw fault('a JSON object');
  const gapSeconds = root.get('gap_seconds');
  if (typeof gapSeconds !== 'number' || !Number.isInteger(gapSeconds) || gapSeconds < 1) throw fault('a whole number in `gap_seconds`');
  const zones = listOf(root.get('zones'));
  if (zones.length === 0 || !zones.every((zone) => typeof zone === 'string')) throw fault('names of zones in `zones`');
  const capacity = listOf(root.get('capacity')).map(listOf);
  if (capacity.length !== zones.length) throw fault(`one list in \`capacity\` for each of the ${zones.length} zones`);
  const [steps = 0] = capacity.map(({ length }) => length);
  if (steps < 1 || steps > maxSteps) throw fault(`1 to ${maxSteps} steps in each list of \`capacity\``);
  for (const [index, zone] of capacity.entries()) {
    if (zone.length !== steps) throw fault(`as many steps for zone ${zones[index]} as for the first: ${steps}`);
    const wrong = zone.findIndex((room) => typeof room !== 'number' || !Number.isInteger(room) || room < 0);
    if (wrong >= 0) throw fault(`a whole number of replicas at step ${wrong + 1} of zone ${zones[index]}`);
  }
  const prices = listOf(root.get('prices'));
  if (prices.length > 0 && prices.length !== zones.length)
    throw fault(`one list or null in \`prices\` for each of the ${zones.length} zones`);
  const name = root.get('name');
  return {
    name: typeof name === 'string' ? name : file,
    gapSeconds,
    zones,
    capacity: capacity.map((zone) => zone.map(Number)),
    ...(prices.length > 0 && { spotUsd: prices.map(meanPrice) }),
  };
}

/** Steps without a price do not count. */
function meanPrice(zone: unknown): number | undefined {
  const known = listOf(zone)
    .filter((usd) => typeof usd === 'number' && usd > 0)
    .map(Number);
  return known.length === 0 ? undefined : known.reduce((sum, usd) => sum + usd, 0) / known.length;
}

function parseJson(file: string, text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch (error) {
    throw new SvcError('SVC_BAD_TRACE', `The spot trace ${file} is not JSON.`, { cause: error });
  }
}

function objectOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? new Map<string, unknown>(Object.entries(value)) : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
