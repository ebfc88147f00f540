import type { z } from 'zod';
import type { Resources } from '../domain/task.ts';
import { SvcError } from '../shared/errors.ts';
import { readAccelerator } from './schema/accelerators.ts';
import { cpuAmount, memoryAmount } from './schema/resources.ts';
import { infra } from './schema/infra.ts';
import type { Reading } from './schema/kit.ts';

/** Resources as command line options, in the same forms as the fields of a task file. */
export interface ResourceOptions {
  readonly gpus: string | undefined;
  readonly infra: string | undefined;
  readonly cpus: string | undefined;
  readonly memory: string | undefined;
  readonly instanceType: string | undefined;
  readonly useSpot: boolean;
}

/** Resources from options, without the defaults of task files: no disk, no ports. SVC_USAGE names the wrong option. */
export function readResourceOptions(options: ResourceOptions): Resources {
  const gpus = optional(options.gpus, (text) => unwrap('--gpus', text, readAccelerator(text)));
  const location = optional(options.infra, (text) => parse('--infra', text, infra));
  const cpus = optional(options.cpus, (text) => parse('--cpus', text, cpuAmount));
  const memory = optional(options.memory, (text) => parse('--memory', text, memoryAmount));
  return {
    cloud: location?.cloud,
    region: location?.region,
    zone: location?.zone,
    cpus,
    memory:
      memory === undefined
        ? undefined
        : { value: memory.value * (memory.perCpu ? (cpus?.value ?? 1) : 1), atLeast: memory.atLeast || memory.perCpu },
    accelerator: gpus?.kind === 'named' ? gpus.accelerator : undefined,
    acceleratorMemory: gpus?.kind === 'memory' ? gpus.memory : undefined,
    instanceType: options.instanceType,
    useSpot: options.useSpot,
    diskSizeGb: 0,
    diskTier: undefined,
    networkTier: undefined,
    ports: [],
    imageId: undefined,
    labels: {},
    maxHourlyCost: undefined,
    otherFields: [],
  };
}

function optional<Result>(text: string | undefined, read: (text: string) => Result): Result | undefined {
  return text === undefined ? undefined : read(text);
}

function parse<Schema extends z.ZodType>(option: string, text: string, schema: Schema): z.output<Schema> {
  const result = schema.safeParse(text);
  return unwrap(option, text, result.success ? { ok: result.data } : { problem: result.error.issues[0]?.message ?? 'is wrong' });
}

/** A problem is a clause that follows the field's name. After a line break comes the remedy. */
function unwrap<Result>(option: string, text: string, result: Reading<Result>): Result {
  if ('ok' in result) return result.ok;
  const [problem, hint] = result.problem.split('\n');
  throw new SvcError('SVC_USAGE', `${option} ${text}: ${problem ?? ''}.`, {
    hint: hint?.replaceAll(/\b(?:accelerators|infra|cpus|memory): /g, `${option} `),
  });
}
