import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A template below scripts/templates/provider, and the path of its result. `NAME` stands for the provider's name. */
const templates: readonly (readonly [template: string, path: string])[] = [
  ['index.ts', 'src/providers/NAME/index.ts'],
  ['client.ts', 'src/providers/NAME/client.ts'],
  ['driver.ts', 'src/providers/NAME/driver.ts'],
  ['errors.ts', 'src/providers/NAME/errors.ts'],
  ['test.ts', 'src/providers/NAME/NAME.process.test.ts'],
  ['page.md', 'docs/clouds/NAME.md'],
];

const registry = 'src/providers/registry.ts';

/** The provider's name in `infra:`. It also starts identifiers and the name of the price table. */
const nameForm = /^[a-z][a-z0-9]{1,19}$/;

/** A file to be written, by its path from the root of the checkout. */
export interface NewFile {
  readonly path: string;
  readonly text: string;
}

/** The first files of a new cloud provider, for the checkout at `root`. Throws an Error for an invalid name. */
export function newProviderFiles(root: string, name: string): readonly NewFile[] {
  if (!nameForm.test(name)) throw new Error(`'${name}' is no name for a place: lower case letters and digits, 2 to 20, a letter first.`);
  const made = templates.map(([template, path]) => ({
    path: path.replaceAll('NAME', name),
    text: fill(readFileSync(join(import.meta.dirname, '../templates/provider', `${template}.template`), 'utf8'), name),
  }));
  const taken = made.find(({ path }) => existsSync(join(root, path)));
  if (taken !== undefined) throw new Error(`There is a ${taken.path} already.`);
  return [...made, withRow(root, name)];
}

/** Writes the files and returns their paths. */
export function writeNewProvider(root: string, name: string): readonly string[] {
  const files = newProviderFiles(root, name);
  for (const { path, text } of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return files.map(({ path }) => path);
}

function fill(template: string, name: string): string {
  return template.replaceAll('__Name__', classPrefix(name)).replaceAll('__name__', name);
}

const classPrefix = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;

/** The registry with a row for the new provider before `ssh`: `svc check` shows clouds first. */
function withRow(root: string, name: string): NewFile {
  const row = `  ${name}: async (context) => new (await import('./${name}/index.ts')).${classPrefix(name)}Provider(context),\n`;
  return edited(root, registry, [
    [/(providerNames = \[[^\]]*)'ssh'/, `$1'${name}', 'ssh'`],
    [/^( {2}ssh: )/m, `${row}$1`],
  ]);
}

function edited(root: string, path: string, changes: readonly (readonly [pattern: RegExp, replacement: string])[]): NewFile {
  let text = readFileSync(join(root, path), 'utf8');
  for (const [pattern, replacement] of changes) {
    if (!pattern.test(text)) throw new Error(`${path} has no ${String(pattern)} to put the place beside: it has changed its form.`);
    text = text.replace(pattern, replacement);
  }
  return { path, text };
}
