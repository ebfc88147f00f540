import { errorCodes, httpStatuses } from '../shared/error-codes.ts';
import { describeObjects, describeRoutes, type DescribedRoute, type JsonSchema } from './json-schemas.ts';
import { apiVersion } from './routes.ts';

const mediaTypes: Readonly<Record<DescribedRoute['reply'], string>> = {
  json: 'application/json',
  lines: 'application/x-ndjson',
  text: 'text/plain',
};

const problem: JsonSchema = {
  type: 'object',
  properties: {
    message: { type: 'string' },
    file: { type: 'string' },
    line: { type: 'integer', minimum: 1 },
    column: { type: 'integer', minimum: 1 },
    excerpt: { type: 'string' },
    hint: { type: 'string' },
  },
  required: ['message', 'file', 'line', 'column'],
};

const errorReply: JsonSchema = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', enum: Object.keys(errorCodes) },
        message: { type: 'string' },
        hint: { type: 'string' },
        problems: { type: 'array', items: problem },
      },
      required: ['code', 'message', 'hint', 'problems'],
    },
  },
  required: ['error'],
};

/** The control API as an OpenAPI 3.1 document: plain data, ready for JSON. */
export function openApiDocument(): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of describeRoutes()) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc control API',
      version: String(apiVersion),
      description: 'Served by the controller on a Unix socket that only its user can reach.',
    },
    paths,
    components: { schemas: { ...describeObjects(), ErrorReply: errorReply } },
  };
}

function operation({ name, summary, params, query, body, reply, replySchema }: DescribedRoute): unknown {
  const parameters = [
    ...params.map((field) => ({ name: field.name, in: 'path', required: true, schema: field.schema })),
    ...query.map((field) => ({ name: field.name, in: 'query', required: field.needed, schema: field.schema })),
  ];
  const failure = {
    description: 'The request failed',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorReply' } } },
  };
  return {
    operationId: name,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: {
      200: { description: 'The request succeeded', content: { [mediaTypes[reply]]: { schema: replySchema } } },
      ...Object.fromEntries(Object.values(httpStatuses).map((status) => [status, failure])),
    },
  };
}
