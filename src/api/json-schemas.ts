import { z } from 'zod';
import { contract, type RouteSchemas } from './contract.ts';
import { clusterView, eventView, jobView, replicaView, serviceView } from './view-schemas.ts';
import { routeNames, routes, type RouteData, type RouteName } from './routes.ts';

/** A JSON Schema of draft 2020-12, which OpenAPI 3.1 uses. */
export type JsonSchema = z.core.JSONSchema.JSONSchema;

/** One field of a path, a query or an object. */
export interface Field {
  readonly name: string;
  readonly needed: boolean;
  readonly schema: JsonSchema;
}

/** A route with the schemas of its request and reply. */
export interface DescribedRoute extends RouteData {
  readonly name: RouteName;
  readonly params: readonly Field[];
  readonly query: readonly Field[];
  readonly body: JsonSchema | undefined;
  /** For `lines`: the schema of one line. */
  readonly replySchema: JsonSchema;
}

/** Objects that several replies share; schemas refer to them as `#/components/schemas/NAME`. */
export const sharedObjects = {
  ServiceView: serviceView,
  ReplicaView: replicaView,
  EventView: eventView,
  ClusterView: clusterView,
  JobView: jobView,
};

const referenceTo = (id: string): string => `#/components/schemas/${id}`;

/** The shared objects as schemas. */
export function describeObjects(): Readonly<Record<string, JsonSchema>> {
  const registry = z.registry<{ readonly id: string }>();
  for (const [id, schema] of Object.entries(sharedObjects)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { uri: referenceTo, override: simplify });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, bare(schema)]));
}

/** Every route, in the order of `routes.ts`. */
export function describeRoutes(): readonly DescribedRoute[] {
  return routeNames.map((name) => {
    const { params, query, body, reply }: RouteSchemas = contract[name];
    return {
      ...routes[name],
      name,
      params: fieldsOf(params),
      query: fieldsOf(query),
      body: body && convert(body, 'input'),
      replySchema: convert(reply, 'output'),
    };
  });
}

/** Fields of a part that is sent as text, typed as parsed. Those without a default are required. */
function fieldsOf(schema: z.ZodType | undefined): readonly Field[] {
  if (schema === undefined) return [];
  const needed = convert(schema, 'input').required ?? [];
  return objectFields(convert(schema, 'output')).map((field) => ({ ...field, needed: needed.includes(field.name) }));
}

/** The fields of an object's schema, in order. */
export function objectFields({ properties = {}, required = [] }: JsonSchema): readonly Field[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    needed: required.includes(name),
    schema: typeof schema === 'boolean' ? {} : schema,
  }));
}

/** A schema in which the shared objects are references. */
function convert(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const registry = z.registry<{ readonly id: string }>();
  for (const [id, shared] of Object.entries(sharedObjects)) registry.add(shared, { id });
  const known = registry.get(schema);
  if (known !== undefined) return { $ref: referenceTo(known.id) };
  const root = registry.add(schema, { id: 'root' });
  const { schemas } = z.toJSONSchema(root, { uri: referenceTo, io, override: simplify });
  return bare(schemas['root'] ?? {});
}

/** Removes what a reader does not need: the bounds of exact integers, and a pattern beside a format. */
function simplify({ jsonSchema }: { readonly jsonSchema: JsonSchema }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
}

/** Without `$schema` and `$id`, which belong only to a schema in a file of its own. */
function bare({ $schema: _schema, $id: _id, ...schema }: JsonSchema): JsonSchema {
  return schema;
}
