import { configSection } from '../../src/spec/schema/config.ts';
import { fieldTables } from './field-tables.ts';
import { toJsonSchema } from './json-schema.ts';
import { page } from './markdown.ts';

const intro = `\`config.yaml\` below \`SVC_HOME\` (by default \`~/.svc/config.yaml\`), from \`src/spec/schema/config.ts\`. Without the file, the defaults hold. Every field is optional; unknown ones are problems (\`SVC_INVALID_CONFIG\`).
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
  return page('# Configuration', intro, '## Top level', fieldTables(toJsonSchema(configSection, 'Configuration'), '', alike));
}
