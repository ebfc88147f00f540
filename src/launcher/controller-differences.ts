import type { Config } from '../domain/config.ts';
import type { ResourceAlternatives, Resources } from '../domain/task.ts';
import { isObject, parseJson } from '../shared/json.ts';
import { SvcError } from '../shared/errors.ts';
import { planWhileLocal } from './controller-plan.ts';
import type { ControllerRecord } from './controller-record.ts';
import { requestedResourcesOf } from './remote-controller.ts';
import { refuseOtherKind, type ExistingController } from './high-availability/kind.ts';

/** A difference between the existing controller and the configuration. Plain data. */
export interface ControllerDifference {
  /** A sentence that names both sides. */
  readonly what: string;
  /** A sentence on how to make them agree. */
  readonly remedy: string;
}

/** How to replace a controller; follows a colon. */
export const beginAnew =
  'take its services down (svc serve down --all; svc down --all), then the controller (svc controller down), and put them up again.';

/** How to get what only a new controller can have. */
export const forNextController = `That holds for the next controller: ${beginAnew}`;

/** Difference between the existing controller's kind and the configured one; empty when they agree. */
export function kindDifference(existing: ExistingController, config: Pick<Config, 'serve'>): readonly ControllerDifference[] {
  try {
    refuseOtherKind(existing, config);
    return [];
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return [{ what: error.message, remedy: error.hint }];
  }
}

/** Differences of a controller on this machine. */
export async function localControllerDifferences(config: Config): Promise<readonly ControllerDifference[]> {
  const kind = kindDifference({ kind: 'local' }, config);
  if (kind.length > 0 || (await planWhileLocal(async () => config)) === undefined) return kind;
  return [
    {
      what: 'serve.controller.resources asks for another machine, and the controller runs on this one.',
      remedy: 'That holds for the next controller, when all services are terminated, after: svc controller stop',
    },
  ];
}

/** Differences of a controller that is a single program on another machine. */
export function remoteControllerDifferences(config: Config, record: ControllerRecord): readonly ControllerDifference[] {
  const kind = kindDifference({ kind: 'remote', record }, config);
  if (kind.length > 0 || requestedResourcesOf(config) === record.requestedResources) return kind;
  const fields = changedFields(parseJson(record.requestedResources), config.serve.controller.resources);
  const which = fields.length === 0 ? '' : ` (${fields.join(', ')})`;
  return [
    {
      what: `serve.controller.resources${which} has changed since the controller got its machine, which stays as it is.`,
      remedy: forNextController,
    },
  ];
}

const fieldNames: Readonly<Partial<Record<keyof Resources, string>>> = {
  cloud: 'infra',
  region: 'infra',
  zone: 'infra',
  instanceType: 'instance_type',
  accelerator: 'accelerators',
  diskSizeGb: 'disk_size',
  diskTier: 'disk_tier',
  useSpot: 'use_spot',
  imageId: 'image_id',
  maxHourlyCost: 'max_hourly_cost',
};

/** Empty when a side has several alternatives, or none. */
function changedFields(before: unknown, now: ResourceAlternatives | undefined): readonly string[] {
  const [was, ...others] = isObject(before) && Array.isArray(before['choices']) ? before['choices'] : [];
  const [is, ...more] = now?.choices ?? [];
  if (others.length > 0 || more.length > 0 || !isObject(was) || is === undefined) return [];
  const current = new Map<string, unknown>(Object.entries(is));
  const keys = new Set([...Object.keys(was), ...current.keys()]);
  const names: Readonly<Record<string, string>> = fieldNames;
  return [
    ...new Set([...keys].filter((key) => JSON.stringify(was[key]) !== JSON.stringify(current.get(key))).map((key) => names[key] ?? key)),
  ];
}
