import type { JsonSchema } from './json-schema.ts';
import { table } from './markdown.ts';

/** One field of a documentation page. */
interface Row {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
}

/**
 * Tables of all fields below a schema: one for each section, headed by its path. A section whose path is in `alike`
 * equals another one: instead of a table it gets the reference from `alike`.
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
