import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as ec2 from '@aws-sdk/client-ec2';
import * as iam from '@aws-sdk/client-iam';
import * as s3 from '@aws-sdk/client-s3';
import * as quotas from '@aws-sdk/client-service-quotas';
import * as ssm from '@aws-sdk/client-ssm';
import * as sts from '@aws-sdk/client-sts';
import type { $SchemaRef } from '@smithy/types';
import { shapeOf, type Shape } from './schema.ts';

/** A difference between a message and the service's model. */
export interface ModelProblem {
  readonly kind: 'missing' | 'unknown' | 'type' | 'enum';
  readonly text: string;
}

/**
 * Compares a decoded message with the model of the official SDK: unknown members, missing required members, values of
 * another type or outside an enumeration. Schemas have the first three, the SDK's declarations the enumerations.
 */
export function modelProblems(schema: $SchemaRef, value: object): readonly ModelProblem[] {
  const problems: ModelProblem[] = [];
  const shape = shapeOf(schema);
  if (!shape.isUnitSchema()) structProblems(shape, value, '', problems);
  return problems;
}

/** The allowed values of a structure's member; undefined where the model allows any text. */
export function enumOf(shape: Shape, member: string): readonly string[] | undefined {
  const [namespace = ''] = (shape.getName(true) ?? '').split('#');
  return enumsOf(namespace).get(`${shape.getName() ?? ''}.${member}`);
}

function structProblems(shape: Shape, value: object, path: string, problems: ModelProblem[]): void {
  const members = new Map(shape.structIterator());
  const fields = new Map<string, unknown>(Object.entries(value));
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`);
  for (const name of requiredOf(shape))
    if (fields.get(name) === undefined) problems.push({ kind: 'missing', text: `${at(name)} is required and missing` });
  for (const [name, field] of fields) {
    const member = members.get(name);
    if (field === undefined) continue;
    if (member === undefined) problems.push({ kind: 'unknown', text: `${at(name)} is not in the model` });
    else valueProblems(member, field, at(name), enumOf(shape, name), problems);
  }
}

function valueProblems(shape: Shape, value: unknown, path: string, allowed: readonly string[] | undefined, problems: ModelProblem[]): void {
  if (shape.isListSchema()) {
    if (Array.isArray(value))
      value.forEach((entry: unknown, index) => valueProblems(shape.getValueSchema(), entry, `${path}.${index + 1}`, allowed, problems));
    else problems.push({ kind: 'type', text: `${path} is no list` });
  } else if (shape.isStructSchema()) {
    if (typeof value === 'object' && value !== null) structProblems(shape, value, path, problems);
    else problems.push({ kind: 'type', text: `${path} is no structure` });
  } else if (!isOfType(shape, value)) problems.push({ kind: 'type', text: `${path} is of another type: ${String(value)}` });
  else if (allowed !== undefined && typeof value === 'string' && !allowed.includes(value))
    problems.push({ kind: 'enum', text: `${path} is none of the values in the model: ${value}` });
}

function isOfType(shape: Shape, value: unknown): boolean {
  if (shape.isBooleanSchema()) return typeof value === 'boolean';
  if (shape.isNumericSchema()) return typeof value === 'number' && Number.isFinite(value);
  if (shape.isTimestampSchema()) return value instanceof Date;
  if (shape.isBlobSchema()) return value instanceof Uint8Array || typeof value === 'string';
  return !shape.isStringSchema() || typeof value === 'string';
}

/** A generated structure names its required members first, and their number last. */
function requiredOf(shape: Shape): readonly string[] {
  const schema: unknown = shape.getSchema();
  if (!Array.isArray(schema)) return [];
  const names: unknown = schema[4];
  const count: unknown = schema[6];
  return Array.isArray(names) && typeof count === 'number' ? names.slice(0, count).map(String) : [];
}

interface Model {
  readonly name: string;
  /** Has the enumerations as objects. */
  readonly exports: object;
}

const models: Readonly<Record<string, Model>> = {
  'com.amazonaws.ec2': { name: '@aws-sdk/client-ec2', exports: ec2 },
  'com.amazonaws.iam': { name: '@aws-sdk/client-iam', exports: iam },
  'com.amazonaws.s3': { name: '@aws-sdk/client-s3', exports: s3 },
  'com.amazonaws.servicequotas': { name: '@aws-sdk/client-service-quotas', exports: quotas },
  'com.amazonaws.ssm': { name: '@aws-sdk/client-ssm', exports: ssm },
  'com.amazonaws.sts': { name: '@aws-sdk/client-sts', exports: sts },
};

/** AWS adds machine types between releases of the SDK. The emulator's own list of types decides about them. */
const openEnums: ReadonlySet<string> = new Set(['_InstanceType']);

const known = new Map<string, ReadonlyMap<string, readonly string[]>>();

/** Allowed values by `STRUCTURE.MEMBER`. Only the declarations name the enumeration of a member. */
function enumsOf(namespace: string): ReadonlyMap<string, readonly string[]> {
  const found = known.get(namespace);
  if (found !== undefined) return found;
  const enums = new Map<string, readonly string[]>();
  known.set(namespace, enums);
  const model = models[namespace];
  if (model === undefined) throw new Error(`the model of ${namespace} is not known`);
  const folder = join(dirname(createRequire(import.meta.url).resolve(model.name)), '../dist-types/models');
  const values = new Map<string, unknown>(Object.entries(model.exports));
  for (const file of readdirSync(folder).filter((one) => one.startsWith('models_')))
    for (const [, structure = '', body = ''] of readFileSync(join(folder, file), 'utf8').matchAll(
      /^export interface (\w+) \{\n(.*?)^\}/gms,
    ))
      for (const [, member = '', type = ''] of body.matchAll(/^ {4}(\w+)\??: (\w+)(?:\[\])?(?: \| undefined)?;$/gm)) {
        const value = openEnums.has(type) ? undefined : values.get(type);
        if (typeof value === 'object' && value !== null) enums.set(`${structure}.${member}`, Object.values(value).map(String));
      }
  return enums;
}
