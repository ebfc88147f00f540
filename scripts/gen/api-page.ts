import {
  describeObjects,
  describeRoutes,
  objectFields,
  type DescribedRoute,
  type Field,
  type JsonSchema,
} from '../../src/api/json-schemas.ts';
import { openApiDocument } from '../../src/api/openapi.ts';
import { apiVersion, apiVersionHeader, svcVersionHeader, versionlessRoutes } from '../../src/api/routes.ts';
import { httpStatuses } from '../../src/shared/error-codes.ts';
import { page, table } from './markdown.ts';

/** `schemas/openapi.json`. */
export function renderOpenApi(): string {
  return `${JSON.stringify(openApiDocument(), null, 2)}\n`;
}

/** `docs/reference/api.md`. */
export function renderApiDocs(): string {
  const routes = describeRoutes();
  return page(
    '# Control API',
    'HTTP over a Unix socket: `controller.sock` in the folder `run` of `SVC_HOME` (mode 0600, so that only its user can call it). The command line uses nothing else, and `src/api/client.ts` is the same as functions with types. As OpenAPI: [schemas/openapi.json](../../schemas/openapi.json).',
    '```sh\ncurl --unix-socket ~/.svc/run/controller.sock http://controller/v1/services\n```',
    `Requests and replies are JSON, unless a route says otherwise; times are UTC in ISO 8601. **Lines** are JSON objects, one per line, until the history ends or the client leaves; a line \`{"error": …}\` is the last one and says why there are no more. **Text** is sent as it comes; a connection that breaks off means that some is missing.`,
    `Each reply carries \`${apiVersionHeader}: ${apiVersion}\` and \`${svcVersionHeader}\`. A request with another \`${apiVersionHeader}\` gets \`SVC_VERSION_MISMATCH\`, except from ${versionlessRoutes.map(code).join(' and ')}; a request without it is served.`,
    '## Routes',
    table(
      ['Route', 'Request', 'Reply', 'What it does'],
      routes.map(({ name, method, path, reply, summary }) => [
        `[${name}](#${name.toLowerCase()})`,
        code(`${method} ${path}`),
        reply,
        summary,
      ]),
    ),
    ...routes.flatMap(renderRoute),
    '## Objects',
    ...Object.entries(describeObjects()).flatMap(([name, schema]) => [`### ${name}`, replyTable(objectFields(schema))]),
    '## Errors',
    'A failed request has a status of 400 or more and this body. `problems` lists the faults of a file, with their positions; for other errors it is empty. The codes are in [errors](errors.md).',
    '```json\n{ "error": { "code": "SVC_SERVICE_NOT_FOUND", "message": "…", "hint": "…", "problems": [] } }\n```',
    table(
      ['Kind of error', 'Status'],
      Object.entries(httpStatuses).map(([kind, status]) => [kind, String(status)]),
    ),
  );
}

function renderRoute(route: DescribedRoute): readonly string[] {
  const { name, method, path, summary, params, query, body, reply, replySchema } = route;
  const inputs = [
    ...params.map((field) => inputRow('path', field)),
    ...query.map((field) => inputRow('query', field)),
    ...(body === undefined ? [] : objectFields(body).map((field) => inputRow('body', field))),
  ];
  const fields = objectFields(replySchema);
  return [
    `### ${name}`,
    `\`${method} ${path}\`: ${summary}.`,
    ...(inputs.length === 0 ? [] : [table(['Field', 'In', 'Type', 'Needed', 'Meaning'], inputs)]),
    ...(fields.length === 0 ? [`Reply (${reply}): ${typeOf(replySchema)}.`] : [`Reply (${reply}):`, replyTable(fields)]),
  ];
}

function inputRow(location: string, { name, needed, schema }: Field): readonly string[] {
  const otherwise = schema.default === undefined ? 'no' : `no: ${code(JSON.stringify(schema.default))}`;
  return [code(name), location, typeOf(schema), needed ? 'yes' : otherwise, schema.description ?? ''];
}

function replyTable(fields: readonly Field[]): string {
  return table(
    ['Field', 'Type', 'Meaning'],
    fields.map(({ name, schema }) => [code(name), typeOf(schema), meaningOf(schema)]),
  );
}

function meaningOf({ description, anyOf = [] }: JsonSchema): string {
  return description ?? anyOf.find((choice) => choice.description !== undefined)?.description ?? '';
}

function typeOf(schema: JsonSchema): string {
  const name = schema.$ref?.split('/').at(-1);
  if (name !== undefined) return `[${name}](#${name.toLowerCase()})`;
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((value) => code(String(value))).join(', ');
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.type === 'array' && typeof schema.items === 'object' && !Array.isArray(schema.items)) return `list of ${typeOf(schema.items)}`;
  if (schema.type === 'object' && typeof schema.additionalProperties === 'object') return `map of ${typeOf(schema.additionalProperties)}`;
  if (Array.isArray(schema.type)) return schema.type.join(' or ');
  return schema.format === 'date-time' ? 'time' : `${String(schema.type)}${boundsOf(schema)}`;
}

function boundsOf({ minimum, maximum, maxLength }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) return ` ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` ≥ ${minimum}`;
  return maxLength === undefined ? '' : ` of at most ${maxLength} characters`;
}

function code(text: string): string {
  return `\`${text}\``;
}
