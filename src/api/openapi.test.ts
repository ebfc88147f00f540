import { expect, test } from 'vitest';
import { describeObjects, describeRoutes, sharedObjects, type JsonSchema } from './json-schemas.ts';
import { openApiDocument } from './openapi.ts';
import { routeNames } from './routes.ts';

const document = JSON.stringify(openApiDocument());

test('every route is an operation of its own', () => {
  const ids = [...document.matchAll(/"operationId":"(\w+)"/g)].map(([, id]) => id);
  expect(new Set(ids)).toEqual(new Set(routeNames));
  expect(ids).toHaveLength(routeNames.length);
});

test('every reference leads to an existing schema, and no schema has its own id', () => {
  const targets = new Set([...document.matchAll(/"\$ref":"([^"]+)"/g)].map(([, target]) => target));
  expect(targets).toEqual(new Set([...Object.keys(sharedObjects), 'ErrorReply'].map((name) => `#/components/schemas/${name}`)));
  expect(document).not.toMatch(/"\$(?:id|schema|defs)"/);
});

test('path and query fields have their parsed type and whether they are required', () => {
  const replica = describeRoutes().find(({ name }) => name === 'terminateReplica');
  expect(replica?.params).toEqual([
    { name: 'name', needed: true, schema: { type: 'string' } },
    { name: 'id', needed: true, schema: { type: 'integer', minimum: 1 } },
  ]);
  expect(replica?.query).toMatchObject([{ name: 'purge', needed: false, schema: { type: 'boolean', default: false } }]);
  const logs = describeRoutes().find(({ name }) => name === 'serviceLogs');
  expect(logs?.query.filter(({ needed }) => needed).map(({ name }) => name)).toEqual(['target']);
});

test('objects shared by replies are described once and referenced', () => {
  const service: JsonSchema = describeObjects()['ServiceView'] ?? {};
  expect(service.properties?.['replicas']).toEqual({ type: 'array', items: { $ref: '#/components/schemas/ReplicaView' } });
  expect(describeRoutes().find(({ name }) => name === 'getService')?.replySchema).toEqual({ $ref: '#/components/schemas/ServiceView' });
});
