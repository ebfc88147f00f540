import { stringify } from 'yaml';

/** Values as YAML documents, one after the other, with a comment before all of them. Equal values give equal text. */
export function printYaml(documents: readonly unknown[], comment: readonly string[] = []): string {
  const head = comment.map((line) => (line === '' ? '#\n' : `# ${line}\n`)).join('');
  return `${head}${documents.map((document) => `---\n${stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })}`).join('')}`;
}
