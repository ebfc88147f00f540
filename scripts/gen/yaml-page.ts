import { taskSection } from '../../src/spec/schema/task.ts';
import { fieldTables } from './field-tables.ts';
import { toJsonSchema } from './json-schema.ts';
import { page } from './markdown.ts';

const intro = `Every field of a task or service file, from \`src/spec/schema/\`. Editors check files that begin with

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

- \`replicas\`, \`workers\` and \`replica_policy\` exclude one another. \`max_replicas\` must not be less than \`min_replicas\`; when they differ, \`target_qps_per_replica\` is needed, which in turn needs \`max_replicas\`.
- A \`target_qps_per_replica\` for each accelerator needs \`load_balancing_policy: instance_aware_least_load\`, and the other way round.
- A service has one port that requests go to: \`service.ports\`, or the only one in \`resources.ports\`. When both are given, the first must be among the second, in every alternative.
- Either all alternatives of a service use spot machines, or none. The three spot fields of \`replica_policy\` need \`use_spot: true\`, and with \`spot_placer\` the alternatives may differ in their location only.
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
  return page('# Task and service files', intro, dialect, rules, '## Top level', fieldTables(toJsonSchema(taskSection, 'Task'), '', alike));
}
