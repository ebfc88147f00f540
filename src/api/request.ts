import type { Context } from 'hono';
import type { ZodType } from 'zod';
import { messageOf, SvcError } from '../shared/errors.ts';
import { contract, type RouteRequest, type RouteSchemas } from './contract.ts';
import { apiVersion, versionlessRoutes, type RouteName } from './routes.ts';

/** Throws SVC_VERSION_MISMATCH when the client speaks another version of the API and the route cares. */
export function checkVersion(name: RouteName, given: string | undefined): void {
  if (given === undefined || given === String(apiVersion) || versionlessRoutes.includes(name)) return;
  throw new SvcError('SVC_VERSION_MISMATCH', `The controller speaks version ${apiVersion} of its API, and this command another one.`);
}

/** The request as the handler gets it. Throws SVC_BAD_REQUEST with everything that does not fit the contract. */
export async function readRequest<Name extends RouteName>(name: Name, context: Context, signal: AbortSignal): Promise<RouteRequest<Name>> {
  const schemas: RouteSchemas = contract[name];
  const faults: string[] = [];
  const parse = (part: string, schema: ZodType, value: unknown): unknown => {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    faults.push(...result.error.issues.map(({ path, message }) => `${[part, ...path].join('.')}: ${message}`));
    return undefined;
  };
  const request = {
    params: schemas.params && parse('params', schemas.params, context.req.param()),
    query: schemas.query && parse('query', schemas.query, context.req.query()),
    body: schemas.body && parse('body', schemas.body, await readJson(context)),
    signal,
  };
  if (faults.length > 0) throw new SvcError('SVC_BAD_REQUEST', `The request "${name}" does not fit its contract: ${faults.join('; ')}.`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each part is the output of the schema that its type is taken from
  return request as RouteRequest<Name>;
}

async function readJson(context: Context): Promise<unknown> {
  const text = await context.req.text();
  try {
    return JSON.parse(text);
  } catch (error) {
    // Not the parser's whole message as it is: it quotes the text, which may hold secrets.
    const where = /position \d+/.exec(messageOf(error))?.[0] ?? 'its end';
    throw new SvcError('SVC_BAD_REQUEST', `The body of the request is not JSON: it breaks off at ${where}.`);
  }
}
