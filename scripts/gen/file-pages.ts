import { configSection } from '../../src/spec/schema/config.ts';
import { taskSection } from '../../src/spec/schema/task.ts';
import { toJsonSchema, type JsonSchema } from './json-schema.ts';
import { page, table } from './markdown.ts';

const yamlIntro = `Every field of a task or service file, from \`src/spec/schema/\`. Editors check files that begin with

\`\`\`yaml
# yaml-language-server: $schema=../../schemas/task.schema.json
\`\`\`

where the path is that of [task.schema.json](../../schemas/task.schema.json) as seen from the file. Unknown fields are problems, and all problems of a file are told at once.`;

const dialect = `## How the file is read

- YAML 1.1 as PyYAML reads it: \`yes\`, \`no\`, \`on\` and \`off\` are booleans, \`010\` is 8, \`0x10\` is 16, \`1_000\` is 1000, \`1:30\` is 90, and \`1e3\` is text. Dates are text.
- Anchors, aliases and merge keys (\`<<\`) work. One document per file, at most 1 MiB, 20,000 values and 100 levels once aliases are written out. Of a key that comes twice the last one counts.
- An empty value directly below the top, \`service\`, \`resources\` and the entries of \`any_of\` and \`ordered\` is as good as none.
- \`$NAME\` and \`\${NAME}\` of \`envs\` and \`secrets\` are put into every text below \`service\`, \`file_mounts\`, \`workdir\` and \`volumes\`, secrets before envs; other names stay as they are. A whole value may be a variable where a number is expected: \`replicas: $N\`. \`setup\` and \`run\` see them as environment variables.
- Values of \`envs\` and \`secrets\` are passed on as they are written: \`yes\` is \`yes\`, \`1.50\` is \`1.50\`. Lists and maps become JSON.
- Relative paths start from the folder of the file. \`~\` is the home folder.`;

const rules = `## Rules over several fields

- \`replicas\`, \`workers\` and \`replica_policy\` exclude one another. \`max_replicas\` must not be less than \`min_replicas\`; when they differ, a target is needed, which in turn needs \`max_replicas\`: \`target_ongoing_requests_per_replica\` for \`autoscaler: concurrency\`, else \`target_qps_per_replica\`.
- Fields that the chosen \`autoscaler\` does not use are problems: delays with \`forecast\`, \`target_qps_per_replica\` with \`concurrency\`, and the fields of these two with \`request_rate\`.
- A \`target_qps_per_replica\` for each accelerator needs \`load_balancing_policy: instance_aware_least_load\`, and the other way round.
- A service has one port that requests go to: \`service.ports\`, or the only one in \`resources.ports\`. When both are given, the first must be among the second, in every alternative.
- The three spot fields of \`replica_policy\` need an alternative with \`use_spot: true\`. With \`spot_placer\` such alternatives may differ in their location only.
- \`infra\` excludes \`cloud\`, \`region\` and \`zone\`; \`any_of\` excludes \`ordered\`; \`gpus\` is \`accelerators\` by another name. \`job_recovery\` cannot be used with a service.
- \`service\` and \`pool\` exclude one another.`;

const resourcesText = 'its fields are those of `resources`';

/** docs/reference/yaml.md */
export function renderYamlPage(): string {
  const alike = {
    'resources.any_of': resourcesText,
    'resources.ordered': resourcesText,
    'resources.gpus': 'accelerators',
    'service.pool': 'pool',
  };
  return page(
    '# Task and service files',
    yamlIntro,
    dialect,
    rules,
    '## Top level',
    fieldTables(toJsonSchema(taskSection, 'Task'), '', alike),
  );
}

const configIntro = `\`config.yaml\` below \`SVC_HOME\` (by default \`~/.svc/config.yaml\`), from \`src/spec/schema/config.ts\`. Without the file, the defaults hold. Every field is optional; unknown ones are problems (\`SVC_INVALID_CONFIG\`).
Settings of the controller apply to the next controller that starts; those of \`local\` at once.

\`\`\`yaml
serve:
  controller:
    autostop: 30
local:
  regions:
    - west
    - name: east
      state: refusing
\`\`\``;

/** docs/reference/config.md */
export function renderConfigPage(): string {
  const alike = { 'serve.controller.resources': 'as `resources` in a task file' };
  return page('# Configuration', configIntro, '## Top level', fieldTables(toJsonSchema(configSection, 'Configuration'), '', alike));
}

interface Row {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
}

/**
 * Tables of all fields below a schema, one per section, headed by its path. A section in `alike` equals another one: it
 * gets the reference from `alike` instead of a table.
 */
export function fieldTables(schema: JsonSchema, path: string, alike: Readonly<Record<string, string>> = {}): string {
  const rows: readonly Row[] = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    return { name, schema: field, required: schema.required?.includes(name) === true };
  });
  const own = table(
    ['Field', 'Form', 'Default', 'Meaning'],
    rows.map((row) => [`\`${row.name}\``, formOf(row.schema), defaultOf(row), row.schema.description ?? '']),
  );
  const below = rows.flatMap((row) => {
    const name = path === '' ? row.name : `${path}.${row.name}`;
    const section = sectionOf(row.schema);
    if (section === undefined || Object.hasOwn(alike, name)) return [];
    return [`## ${name}\n\n${fieldTables(section, name, alike)}`];
  });
  return [own, ...below].join('\n\n');
}

/** The section that a field contains, directly or as items of a list. */
function sectionOf(schema: JsonSchema): JsonSchema | undefined {
  if (schema.properties !== undefined) return schema;
  const inner = [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])];
  if (typeof schema.additionalProperties === 'object') inner.push(schema.additionalProperties);
  for (const each of inner) {
    const found = sectionOf(each);
    if (found !== undefined) return found;
  }
  return undefined;
}

function defaultOf({ schema, required }: Row): string {
  if (required) return '**required**';
  if (schema.defaultWords !== undefined) return schema.defaultWords;
  return schema.default === undefined ? '' : `\`${JSON.stringify(schema.default).replaceAll('"', '')}\``;
}

function formOf(schema: JsonSchema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  // The values of variables: everything a YAML scalar or collection can be.
  if (schema.anyOf !== undefined && schema.anyOf.length > 4) return 'any value';
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map((each) => formOf(each)))].join(', or ');
  if (Array.isArray(schema.type)) return schema.type.map((type: string) => formOf({ type })).join(', or ');
  if (schema.type === 'array') return schema.items === undefined ? 'list' : `list of ${formOf(schema.items)}`;
  if (schema.type === 'object') return mapForm(schema);
  if (schema.type === 'integer' || schema.type === 'number') return numberForm(schema);
  if (schema.type === 'boolean') return '`true`, `false`';
  if (schema.type === 'null') return 'nothing';
  return schema.type === 'string' ? 'text' : 'anything';
}

function mapForm(schema: JsonSchema): string {
  if (schema.properties !== undefined) return 'section';
  const values = schema.additionalProperties;
  return typeof values === 'object' && Object.keys(values).length > 0 ? `map to ${formOf(values)}` : 'map';
}

function numberForm({ type, minimum, maximum, exclusiveMinimum }: JsonSchema): string {
  const kind = type === 'integer' ? 'whole number' : 'number';
  if (exclusiveMinimum !== undefined) return `${kind} above ${exclusiveMinimum}`;
  if (minimum !== undefined && maximum !== undefined) return `${kind} from ${minimum} to ${maximum}`;
  return minimum === undefined ? kind : `${kind} from ${minimum}`;
}
