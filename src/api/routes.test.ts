import { expect, test } from 'vitest';
import { z } from 'zod';
import { contract, type RouteSchemas } from './contract.ts';
import { routes } from './routes.ts';

const names = Object.keys(routes).toSorted();

/** The names of the fields of an object schema. */
const fieldsOf = (schema: z.ZodType | undefined): readonly string[] =>
  schema instanceof z.ZodObject ? Object.keys(schema.shape).toSorted() : [];

test('routes and contract have the same names', () => {
  expect(Object.keys(contract).toSorted()).toEqual(names);
});

test('no two routes share a method and a path', () => {
  const routePaths = Object.values(routes).map(({ method, path }) => `${method} ${path.replaceAll(/:\w+/g, ':')}`);
  expect(new Set(routePaths).size).toBe(routePaths.length);
});

test('the parameters of each path are those of the contract', () => {
  const schemas: Readonly<Record<string, RouteSchemas>> = contract;
  const inPaths = Object.entries(routes).map(([name, { path }]) => [
    name,
    [...path.matchAll(/:(\w+)/g)].map(([, key]) => key ?? '').toSorted(),
  ]);
  expect(inPaths).toEqual(Object.keys(routes).map((name) => [name, fieldsOf(schemas[name]?.params)]));
});

test('only routes that change something have a body', () => {
  const schemas: Readonly<Record<string, RouteSchemas>> = contract;
  const odd = Object.entries(routes).filter(([name, { method }]) => schemas[name]?.body !== undefined && method !== 'POST');
  expect(odd).toEqual([]);
});
