import { z } from 'zod';

/** The part of JSON Schema (draft 7) that svc's schemas use. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  /** svc's own keyword, only for the documentation: a default that is no fixed value. */
  readonly defaultWords?: string;
  /** svc's own keyword: the words of `enum` match in any case. */
  readonly anyCase?: boolean;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** The JSON Schema of a file's content before parsing, with svc's descriptions and defaults. */
export function toJsonSchema(schema: z.ZodType, title: string): JsonSchema {
  const result = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-07',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      // The package omits the default of a transformed value, and adds limits for safe integers: noise in an editor.
      const metadata = z.globalRegistry.get(zodSchema);
      if (metadata?.['default'] !== undefined) jsonSchema['default'] = metadata['default'];
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}') delete jsonSchema.propertyNames;
    },
  });
  const { $schema, ...rest } = result;
  const titled: object = { $schema, title, ...rest };
  return isJsonSchema(titled) ? titled : {};
}

/** `JsonSchema` is a part of the package's type, and all its fields are optional. */
function isJsonSchema(value: object): value is JsonSchema {
  return '$schema' in value;
}

/** The text of a schema file. */
export function renderJsonSchema(schema: JsonSchema): string {
  return `${JSON.stringify(schema, forEditors, 2)}\n`;
}

/** Removes svc's own keywords. JSON Schema has no case-insensitive words, so this lists lower and upper case. */
function forEditors(key: string, value: unknown): unknown {
  if (key === 'defaultWords' || key === 'anyCase') return undefined;
  if (typeof value !== 'object' || value === null || !('anyCase' in value) || !('enum' in value) || !Array.isArray(value.enum))
    return value;
  return { ...value, enum: value.enum.flatMap((word) => [String(word), String(word).toUpperCase()]) };
}
