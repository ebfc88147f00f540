import { SvcError } from '../shared/errors.ts';
import { readVariables, type TaskVariables } from './read/variables.ts';
import { Report } from './report.ts';
import { SourceText } from './source-text.ts';
import { Substitution } from './substitute.ts';
import { composeYaml } from './yaml/compose.ts';
import { dropNulls } from './yaml/drop-nulls.ts';
import { nodeAt, type MapEntry, type MapNode, type Path, type YamlNode } from './yaml/node.ts';

/** A task file's text with additions from the command line. */
export interface TaskSource {
  readonly source: string;
  /** Absolute path of the file, or `-` for standard input. Used in messages and to resolve relative paths. */
  readonly file: string;
  readonly envs: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Replaces the `workdir` of the file. */
  readonly workdir?: string | undefined;
  /** What `~` expands to; by default the home folder of the user. */
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
  /** With variables substituted, and without empty fields that count as absent. */
  readonly root: MapNode;
  /** As written. */
  readonly written: MapNode;
  readonly variables: TaskVariables;
  /** Collects problems with their positions; values of secrets are masked. */
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
  const substitution = new Substitution(variables, maxTaskBytes);
  const root = substituteSections(dropped, variables, substitution);
  const report = new Report(source, root, () => variables.secrets.values());
  if (substitution.tooLongAt !== undefined) {
    report.fault({ at: substitution.tooLongAt, message: tooLong, hint: tooLongHint });
    throw report.toError('SVC_INVALID_TASK', 'The task file');
  }
  return { root, written, variables, report };
}

const tooLong = 'with the values of its variables put in, the file is larger than 1 MiB';

const tooLongHint = 'Name large values only in run and setup, which see them as environment variables.';

/**
 * A value for messages: itself when the file contains it, else the text with `$NAME`. Values of variables are never
 * shown: short secrets cannot be masked reliably in a text.
 */
export function printableAt(root: YamlNode, path: Path, value: string): string {
  const node = nodeAt(root, path);
  return node?.kind === 'scalar' && node.origin !== 'file' ? node.text : value;
}

const blankHint = 'Write a task into it, for instance: run: echo hello; examples/hello/service.yaml is a whole service.';

function isBlank(text: string): boolean {
  return text.split('\n').every((line) => /^\s*(?:#|---|$)/.test(line));
}

/** Sections in which an empty value counts as absent. Deeper ones are mistakes. */
const nullableSections = [[], ['service'], ['resources'], ['resources', 'any_of', '*'], ['resources', 'ordered', '*']] as const;

/** Variables are substituted only below these fields. `run` and `setup` see them as real environment variables. */
const substituted = new Set(['service', 'file_mounts', 'workdir', 'volumes']);

function substituteSections(root: MapNode, variables: TaskVariables, substitution: Substitution): MapNode {
  if (variables.values.size === 0 && variables.missing.size === 0) return root;
  const entries = [...root.entries].map(([key, entry]): readonly [string, MapEntry] => {
    if (!substituted.has(key)) return [key, entry];
    return [key, { ...entry, value: key === 'service' ? substituteService(entry.value, substitution) : substitution.of(entry.value) }];
  });
  return { ...root, entries: new Map(entries) };
}

/** `readiness_probe.post_data` may be JSON in text: values substituted into it need escaping. */
function substituteService(service: MapEntry['value'], substitution: Substitution): MapEntry['value'] {
  const body = nodeAt(service, ['readiness_probe', 'post_data']);
  // An empty list stands in for it, so its variables are substituted once and count once.
  const result = substitution.of(body === undefined ? service : withPostData(service, { ...body, kind: 'list', items: [] }));
  return body === undefined ? result : withPostData(result, substitution.ofJson(body));
}

function withPostData(service: MapEntry['value'], body: MapEntry['value']): MapEntry['value'] {
  const probe = nodeAt(service, ['readiness_probe']);
  if (service.kind !== 'map' || probe?.kind !== 'map') return service;
  const probeEntry = service.entries.get('readiness_probe');
  const bodyEntry = probe.entries.get('post_data');
  if (probeEntry === undefined || bodyEntry === undefined) return service;
  const newProbe = { ...probe, entries: new Map(probe.entries).set('post_data', { ...bodyEntry, value: body }) };
  return { ...service, entries: new Map(service.entries).set('readiness_probe', { ...probeEntry, value: newProbe }) };
}
