import type { Config } from '../domain/config.ts';
import type { ResourceAlternatives, Resources } from '../domain/task.ts';
import { isObject } from '../shared/is-object.ts';
import { SvcError } from '../shared/errors.ts';
import { parseJson } from '../shared/parse-json.ts';
import { planWhileHere } from './controller-plan.ts';
import type { ControllerRecord } from './controller-record.ts';
import { wishOf } from './elsewhere.ts';
import { refuseOtherKind, type ExistingController } from './high-availability/kind.ts';

/** Where the controller that there is contradicts the configuration. Plain data. */
export interface ControllerDifference {
  /** A sentence with both sides. */
  readonly what: string;
  /** What makes them agree, as a sentence. */
  readonly remedy: string;
}

/** How a controller is replaced by a new one, to stand behind a colon. */
export const beginAnew =
  'take its services down (svc serve down --all; svc down --all), then the controller (svc controller down), and put them up again.';

/** What another machine, or one more thing that only a new controller can have, takes. */
export const forNextController = `That holds for the next controller: ${beginAnew}`;

/** Whether the controller is of the kind that the configuration asks for; none when it is. */
export function kindDifference(existing: ExistingController, config: Pick<Config, 'serve'>): readonly ControllerDifference[] {
  try {
    refuseOtherKind(existing, config);
    return [];
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return [{ what: error.message, remedy: error.hint }];
  }
}

/** Of a controller on this machine. */
export async function differencesHere(config: Config): Promise<readonly ControllerDifference[]> {
  const kind = kindDifference({ kind: 'here' }, config);
  if (kind.length > 0 || (await planWhileHere(async () => config)) === undefined) return kind;
  return [
    {
      what: 'serve.controller.resources asks for another machine, and the controller runs on this one.',
      remedy: 'That holds for the next controller, when all services were taken down, after: svc controller stop',
    },
  ];
}

/** Of a controller that is one program on another machine. */
export function differencesElsewhere(config: Config, record: ControllerRecord): readonly ControllerDifference[] {
  const kind = kindDifference({ kind: 'elsewhere', record }, config);
  if (kind.length > 0 || wishOf(config) === record.wished) return kind;
  const fields = changedFields(parseJson(record.wished), config.serve.controller.resources);
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

/** Names of the fields that differ, as files write them; none where there are several alternatives, or none on one side. */
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
