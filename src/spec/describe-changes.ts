import { structuredPatch } from 'diff';
import type { Task } from '../domain/task.ts';
import { isObject } from '../shared/json.ts';
import { printYaml } from './print-yaml.ts';
import { openTask } from './task-document.ts';
import { toValue } from './yaml/node.ts';

interface WrittenTask {
  readonly task: Task;
  /** The file as the user wrote it. */
  readonly source: string;
}

/** Unchanged lines around a changed one. */
const context = 2;

/**
 * The difference between two versions of a service file, one line each: removed lines begin with `-`, new ones with
 * `+`, others with a space. Values of secrets are never shown. `hasOtherFiles`: the working files differ too.
 */
export function describeChanges(before: WrittenTask, after: WrittenTask, hasOtherFiles: boolean): readonly string[] {
  const patch = structuredPatch('', '', textOf(before), textOf(after, before), '', '', { context });
  const lines = patch.hunks.flatMap(({ lines: hunk }, index) => [...(index === 0 ? [] : [' ...']), ...hunk]);
  return [...lines, ...(hasOtherFiles ? ['+ (files of the working directory or of file_mounts)'] : [])];
}

/** The file with the values of the command line and without those of secrets. */
function textOf({ task, source }: WrittenTask, before?: WrittenTask): string {
  const { envs, secrets } = task;
  // As written: in the substituted document, values of secrets stand in other fields too.
  const { written } = openTask({ source, file: '-', envs, secrets });
  const masked = Object.entries(secrets).map(([name, value]) => {
    const earlier = before?.task.secrets[name];
    return [name, earlier === undefined || earlier === value ? '(hidden)' : '(hidden, changed)'];
  });
  const fields = toValue({ ...written, entries: new Map([...written.entries].filter(([name]) => name !== 'envs' && name !== 'secrets')) });
  const text = printYaml([
    {
      ...(isObject(fields) ? fields : {}),
      ...(Object.keys(envs).length === 0 ? {} : { envs }),
      ...(masked.length === 0 ? {} : { secrets: Object.fromEntries(masked) }),
    },
  ]);
  return text.slice(text.indexOf('\n') + 1);
}
