import { z } from 'zod';
import { parseDuration, parseSize } from '../../shared/units.ts';

type Json = string | number | boolean | readonly Json[];

interface DefaultInWords {
  readonly words: string;
}

interface FieldMetadata {
  readonly description: string;
  readonly default?: Json;
  /** Not part of the JSON Schema. */
  readonly defaultWords?: string;
}

/** An optional field with its text for the documentation and the JSON Schema. */
export function field<Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  defaultValue?: Json | DefaultInWords,
): z.ZodOptional<Schema> {
  const metadata: FieldMetadata =
    typeof defaultValue === 'object' && 'words' in defaultValue
      ? { description, defaultWords: defaultValue.words }
      : { description, ...(defaultValue === undefined ? {} : { default: defaultValue }) };
  return schema.optional().meta({ ...metadata });
}

/** A field that has a value even where the file omits it. */
export function defaulted<Schema extends z.ZodType>(
  schema: Schema,
  description: string,
  value: z.input<Schema> & Json,
): z.ZodPrefault<Schema> {
  const metadata: FieldMetadata = { description, default: value };
  return z.prefault(schema, value).meta({ ...metadata });
}

/** A required field. */
export function required<Schema extends z.ZodType>(schema: Schema, description: string): Schema {
  return schema.meta({ description });
}

/** A map with fixed fields. The message for an unknown field lists the known ones, for a later suggestion. */
export function section<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const known = Object.keys(shape).join(' ');
  return z.strictObject(shape, { error: (issue) => (issue.code === 'unrecognized_keys' ? known : undefined) });
}

/** The result of reading a text, or a problem. A hint may follow the problem after a line break. */
export type Reading<Result> = { readonly ok: Result } | { readonly problem: string };

/** Converts a value to its meaning. A problem becomes a validation issue at the value's path. */
export function reading<Schema extends z.ZodType, Result>(schema: Schema, read: (value: z.output<Schema>) => Reading<Result>) {
  return schema.transform((value, context): Result => {
    const result = read(value);
    if ('ok' in result) return result.ok;
    context.addIssue({ code: 'custom', message: result.problem });
    return z.NEVER;
  });
}

/** Text that is not empty. */
export const someText = z.string().min(1);

/** Seconds, about 23 days: a longer time does not fit a timer (2^31 ms). */
const maxSeconds = 2_000_000;

/** A number of seconds. */
export const seconds = z.number().min(0).max(maxSeconds);

/** A number of seconds that is not 0. */
export const someSeconds = z.number().gt(0).max(maxSeconds);

/** Marks a type issue of a whole number. Without it the issue says only that a number was expected. */
export const wholeNumberMark = 'int';

/** A number without a fraction. */
export const wholeNumber = z.int({ error: (issue) => (issue.code === 'invalid_type' ? wholeNumberMark : undefined) });

/** A port number. */
export const port = wholeNumber.min(1).max(65_535);

/** More than any service has: a typing error beyond that would be expensive. */
export const replicaCount = wholeNumber.min(0).max(10_000);

/** Seconds, or text such as `90s` or `10m`. */
export const duration = z.union([
  seconds,
  reading(z.string(), (text) => {
    const parsed = parseDuration(text, 's');
    if (parsed === undefined) return { problem: 'is not a duration\nWrite seconds, or for instance 90s, 10m or 1h30m.' };
    return parsed > maxSeconds ? { problem: `must be at most ${maxSeconds} seconds` } : { ok: parsed };
  }),
]);

/** Bytes, or text such as `16MB`, within bounds in bytes. */
export function byteSizeBetween(min: number, max: number) {
  return z.union([
    wholeNumber.min(min).max(max),
    reading(z.string(), (text): Reading<number> => {
      const parsed = parseSize(text, 'B');
      if (parsed === undefined || parsed < 1) return { problem: 'is not a size\nWrite bytes, or for instance 512KB or 16MB.' };
      if (parsed < min) return { problem: `must be at least ${min} bytes` };
      return parsed > max ? { problem: `must be at most ${max} bytes` } : { ok: Math.floor(parsed) };
    }),
  ]);
}

/** A closed list of words, matched without regard to case. */
export function word<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.preprocess((value) => (typeof value === 'string' ? value.toLowerCase() : value), z.enum(words)).meta({ anyCase: true });
}

/** Data of any form, kept for later or for other programs. */
export const anything = z.unknown();

/** A map of any form. */
export const anyMap = z.record(z.string(), z.unknown());
