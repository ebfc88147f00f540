import { roleYaml } from '../../src/domain/kubernetes/kubernetes-role.ts';
import { configSection } from '../../src/spec/schema/config.ts';
import { sshPoolsSection } from '../../src/spec/load-ssh-pools.ts';
import { taskSection } from '../../src/spec/schema/task.ts';
import { renderApiDocs, renderOpenApi } from './api-page.ts';
import { renderCliPage } from './cli-page.ts';
import { renderConfigPage, renderYamlPage } from './file-pages.ts';
import { renderErrorsPage } from './errors-page.ts';
import { renderJsonSchema, toJsonSchema } from './json-schema.ts';
import { renderMetricsPage } from './metrics-page.ts';
import { renderStatesPage } from './states-page.ts';

/** A committed file that a script generates from the source. */
export interface GeneratedFile {
  /** From the root of the checkout. */
  readonly path: string;
  /** The whole text. The same source always gives the same text. */
  readonly render: () => string | Promise<string>;
}

/** All of them: `npm run gen` writes them, and a test fails when one is stale. */
export const generatedFiles: readonly GeneratedFile[] = [
  { path: 'schemas/task.schema.json', render: () => renderJsonSchema(toJsonSchema(taskSection, 'svc task or service file')) },
  { path: 'schemas/config.schema.json', render: () => renderJsonSchema(toJsonSchema(configSection, 'svc configuration')) },
  { path: 'schemas/ssh-pools.schema.json', render: () => renderJsonSchema(toJsonSchema(sshPoolsSection, 'svc pools of SSH hosts')) },
  { path: 'docs/reference/yaml.md', render: renderYamlPage },
  { path: 'docs/reference/config.md', render: renderConfigPage },
  { path: 'docs/reference/states.md', render: renderStatesPage },
  { path: 'docs/reference/errors.md', render: renderErrorsPage },
  { path: 'docs/reference/metrics.md', render: renderMetricsPage },
  { path: 'docs/reference/api.md', render: renderApiDocs },
  { path: 'docs/reference/cli.md', render: renderCliPage },
  { path: 'docs/reference/kubernetes-role.yaml', render: () => roleYaml() },
  { path: 'schemas/openapi.json', render: renderOpenApi },
];
