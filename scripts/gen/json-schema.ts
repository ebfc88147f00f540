import { z } from 'zod';

/** The part of JSON Schema (draft 7) that our schemas use. */
export interface JsonSchema {
  readonly $schema?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  /** Ours, for the documentation only: a default that is no fixed value. */
  readonly defaultWords?: string;
  /** Ours: the words of `enum` may be written in any case. */
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

/** The JSON Schema of what a file may say (before it is read), with our descriptions and defaults. */
export function toJsonSchema(schema: z.ZodType, title: string): JsonSchema {
  const result = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-07',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      // The package leaves the default out where a value is transformed; and it says that integers are safe, which is noise in an editor.
      const notes = z.globalRegistry.get(zodSchema);
      if (notes?.['default'] !== undefined) jsonSchema['default'] = notes['default'];
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (JSON.stringify(jsonSchema.propertyNames) === '{"type":"string"}') delete jsonSchema.propertyNames;
    },
  });
  const { $schema, ...rest } = result;
  const titled: object = { $schema, title, ...rest };
  return isJsonSchema(titled) ? titled : {};
}

/** Our interface is the part of theirs that our schemas use; nothing of it is required. */
function isJsonSchema(value: object): value is JsonSchema {
  return '$schema' in value;
}

/** The text of a schema file. */
export function renderJsonSchema(schema: JsonSchema): string {
  return `${JSON.stringify(schema, forEditors, 2)}\n`;
}

/** Takes our own keywords away. JSON Schema knows no words of any case: lower and upper case are what people write. */
function forEditors(key: string, value: unknown): unknown {
  if (key === 'defaultWords' || key === 'anyCase') return undefined;
  if (typeof value !== 'object' || value === null || !('anyCase' in value) || !('enum' in value) || !Array.isArray(value.enum))
    return value;
  return { ...value, enum: value.enum.flatMap((word) => [String(word), String(word).toUpperCase()]) };
}
