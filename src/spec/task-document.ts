import { SvcError } from '../shared/errors.ts';
import { readVariables, type TaskVariables } from './read/variables.ts';
import { Report } from './report.ts';
import { SourceText } from './source-text.ts';
import { substitute, substituteJson } from './substitute.ts';
import { composeYaml } from './yaml/compose.ts';
import { dropNulls } from './yaml/drop-nulls.ts';
import { nodeAt, type MapEntry, type MapNode, type Path, type YamlNode } from './yaml/node.ts';

/** A task file's text with what the command line added to it. */
export interface TaskSource {
  readonly source: string;
  /** Absolute path of the file, or `-` for standard input: for messages, and what relative paths start from. */
  readonly file: string;
  readonly envs: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Replaces the `workdir` of the file. */
  readonly workdir?: string | undefined;
  /** What `~` stands for; by default the home folder of the user. */
  readonly home?: string | undefined;
}

/** Bytes (1 MiB); real files have a few thousand. */
export const maxTaskBytes = 1_048_576;

/** The error for a file beyond `maxTaskBytes`. */
export function tooBig(file: string): SvcError {
  return new SvcError('SVC_FILE_TOO_BIG', `${file} is larger than 1 MiB, which no task file needs to be.`);
}

/** A task file as a document: its fields are not validated. */
export interface TaskDocument {
  /** With variables put in, and without fields that are as good as none. */
  readonly root: MapNode;
  /** As written. */
  readonly written: MapNode;
  readonly variables: TaskVariables;
  /** Takes what is found wrong with it, and gives it places; values of secrets are starred out. */
  readonly report: Report;
}

/** Reads the YAML of a task file. Throws SVC_FILE_TOO_BIG, and SVC_INVALID_TASK when it is not one map of fields. */
export function openTask(input: TaskSource): TaskDocument {
  if (input.source.length > maxTaskBytes || Buffer.byteLength(input.source) > maxTaskBytes) throw tooBig(input.file);
  const source = new SourceText(input.source.replace(/^\uFEFF/, ''), input.file);
  const { root: written, faults } = composeYaml(source);
  if (written?.kind !== 'map') {
    const report = new Report(source, written, () => Object.values(input.secrets));
    for (const fault of faults) report.fault(fault);
    if (written !== undefined) report.at([], 'expected a map of fields such as resources, run and service', 'Is it the right file?');
    throw report.toError('SVC_INVALID_TASK', 'The task file', isBlank(source.text) ? { hint: blankHint } : {});
  }
  const dropped = dropNulls(written, nullableSections);
  const variables = readVariables(dropped, input);
  const root = substituteSections(dropped, variables);
  return { root, written, variables, report: new Report(source, root, () => variables.secrets.values()) };
}

/**
 * What may be printed of a value: the value itself when the file has it so, else the text with `$NAME` in it. Values of variables are never
 * shown: short secrets cannot be starred out of a text.
 */
export function printableAt(root: YamlNode, path: Path, value: string): string {
  const node = nodeAt(root, path);
  return node?.kind === 'scalar' && node.origin !== 'file' ? node.text : value;
}

const blankHint = 'Write a task into it, for instance: run: echo hello; examples/hello/service.yaml is a whole service.';

function isBlank(text: string): boolean {
  return text.split('\n').every((line) => /^\s*(?:#|---|$)/.test(line));
}

/** Sections in which an empty value is as good as none. Deeper ones are mistakes. */
const nullableSections = [[], ['service'], ['resources'], ['resources', 'any_of', '*'], ['resources', 'ordered', '*']] as const;

/** Variables are put in below these fields only; `run` and `setup` see them as real environment variables. */
const substituted = new Set(['service', 'file_mounts', 'workdir', 'volumes']);

function substituteSections(root: MapNode, variables: TaskVariables): MapNode {
  if (variables.values.size === 0 && variables.missing.size === 0) return root;
  const entries = [...root.entries].map(([key, entry]): readonly [string, MapEntry] => {
    if (!substituted.has(key)) return [key, entry];
    return [key, { ...entry, value: key === 'service' ? substituteService(entry.value, variables) : substitute(entry.value, variables) }];
  });
  return { ...root, entries: new Map(entries) };
}

/** `readiness_probe.post_data` may be JSON in text, which takes values with care. */
function substituteService(service: MapEntry['value'], variables: TaskVariables): MapEntry['value'] {
  const result = substitute(service, variables);
  const body = nodeAt(service, ['readiness_probe', 'post_data']);
  const probe = nodeAt(result, ['readiness_probe']);
  if (result.kind !== 'map' || probe?.kind !== 'map' || body === undefined) return result;
  const probeEntry = result.entries.get('readiness_probe');
  const bodyEntry = probe.entries.get('post_data');
  if (probeEntry === undefined || bodyEntry === undefined) return result;
  const newProbe = { ...probe, entries: new Map(probe.entries).set('post_data', { ...bodyEntry, value: substituteJson(body, variables) }) };
  return { ...result, entries: new Map(result.entries).set('readiness_probe', { ...probeEntry, value: newProbe }) };
}
