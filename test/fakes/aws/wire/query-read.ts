import { ApiError } from './api-error.ts';
import { shapeOf, simpleValue, traitsOf, type Shape, type WireValue } from './schema.ts';
import type { $SchemaRef } from '@smithy/types';

/** `ec2` has flat lists and capitalised names; `query` (IAM, STS) has `.member.1`. */
export type QueryDialect = 'ec2' | 'query';

interface Node {
  text: string | undefined;
  readonly children: Map<string, Node>;
}

/** Parses the parameters of a form, `Filter.1.Name=x`, by the schema. Unknown parameters are refused, as at AWS. */
export function readQuery(schema: $SchemaRef, form: URLSearchParams, dialect: QueryDialect): Record<string, WireValue> {
  const root: Node = { text: undefined, children: new Map() };
  for (const [key, text] of form) {
    if (key === 'Action' || key === 'Version') continue;
    let node = root;
    for (const step of key.split('.')) {
      const next = node.children.get(step) ?? { text: undefined, children: new Map() };
      node.children.set(step, next);
      node = next;
    }
    node.text = text;
  }
  return struct(shapeOf(schema), root, '', dialect);
}

function nameOf(member: Shape, name: string, dialect: QueryDialect): string {
  const traits = traitsOf(member);
  if (dialect === 'query') return traits.xmlName ?? name;
  const key = traits.ec2QueryName ?? traits.xmlName ?? name;
  return traits.ec2QueryName === undefined ? key.slice(0, 1).toUpperCase() + key.slice(1) : key;
}

function struct(shape: Shape, node: Node, path: string, dialect: QueryDialect): Record<string, WireValue> {
  const value: Record<string, WireValue> = {};
  const left = new Set(node.children.keys());
  for (const [name, member] of shape.isUnitSchema() ? [] : shape.structIterator()) {
    const key = nameOf(member, name, dialect);
    const child = node.children.get(key);
    if (child === undefined) continue;
    left.delete(key);
    value[name] = read(member, child, path === '' ? key : `${path}.${key}`, dialect);
  }
  const [unknown] = left;
  if (unknown === undefined) return value;
  throw new ApiError('UnknownParameter', `The parameter ${path === '' ? unknown : `${path}.${unknown}`} is not recognized`, 400);
}

function read(shape: Shape, node: Node, path: string, dialect: QueryDialect): WireValue {
  if (shape.isStructSchema()) return struct(shape, node, path, dialect);
  if (shape.isListSchema()) {
    const item = shape.getValueSchema();
    const flat = dialect === 'ec2' || traitsOf(shape).xmlFlattened !== undefined;
    const entries = flat ? node.children : (node.children.get(traitsOf(item).xmlName ?? 'member')?.children ?? new Map<string, Node>());
    return [...entries]
      .toSorted(([a], [b]) => Number(a) - Number(b))
      .map(([index, entry]) => read(item, entry, `${path}.${index}`, dialect));
  }
  const value = simpleValue(shape, node.text ?? '');
  if (value === undefined) throw new ApiError('InvalidParameterValue', `Value (${node.text ?? ''}) for parameter ${path} is invalid.`, 400);
  return value;
}
