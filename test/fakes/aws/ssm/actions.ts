import * as sdk from '@aws-sdk/client-ssm';
import { action, type Action } from '../core/action.ts';
import { imageData, imageId } from '../ec2/image-data.ts';
import { ApiError } from '../wire/api-error.ts';

/** Publication date of the public images; earlier than any test. */
const published = new Date(Date.UTC(2026, 2, 1));
const mostNames = 10;

/** The public parameters of a region by name. */
function parametersOf(region: string): ReadonlyMap<string, sdk.Parameter> {
  return new Map(
    imageData.map((image) => [
      image.parameter,
      {
        Name: image.parameter,
        Type: 'String',
        Value: imageId(image, region),
        Version: 7,
        LastModifiedDate: published,
        ARN: `arn:aws:ssm:${region}::parameter${image.parameter}`,
        DataType: 'aws:ec2:image',
      } satisfies sdk.Parameter,
    ]),
  );
}

function byPath(input: sdk.GetParametersByPathRequest, region: string, pageLimit: number): sdk.GetParametersByPathResult {
  const { Path: path = '', Recursive: recursive = false, MaxResults: maxResults = mostNames, NextToken: token } = input;
  if (!path.startsWith('/')) throw new ApiError('ValidationException', 'The parameter path must begin with a slash.', 400);
  if (maxResults < 1 || maxResults > mostNames)
    throw new ApiError('ValidationException', `Value '${maxResults}' at 'maxResults' failed to satisfy constraint: between 1 and 10`, 400);
  const prefix = path.endsWith('/') ? path : `${path}/`;
  const found = [...parametersOf(region).values()]
    .filter(({ Name: name = '' }) => name.startsWith(prefix) && (recursive || !name.slice(prefix.length).includes('/')))
    .toSorted((a, b) => (a.Name ?? '').localeCompare(b.Name ?? ''));
  const start = token === undefined ? 0 : Number(token);
  if (!Number.isInteger(start)) throw new ApiError('InvalidNextToken', 'The specified token is not valid.', 400);
  const size = Math.min(maxResults, pageLimit);
  return { Parameters: found.slice(start, start + size), ...(start + size < found.length ? { NextToken: String(start + size) } : {}) };
}

/** All emulated actions of Systems Manager: the public parameters that name images. */
export function ssmActions(pageLimit: () => number): readonly Action[] {
  return [
    action(
      sdk.GetParameter$,
      ({ Name: name = '', WithDecryption: _decryption }: sdk.GetParameterRequest, { region }): sdk.GetParameterResult => {
        const parameter = parametersOf(region).get(name);
        if (parameter === undefined) throw new ApiError('ParameterNotFound', `Parameter ${name} not found.`, 400);
        return { Parameter: parameter };
      },
    ),
    action(
      sdk.GetParameters$,
      ({ Names: names = [], WithDecryption: _decryption }: sdk.GetParametersRequest, { region }): sdk.GetParametersResult => {
        if (names.length > mostNames) throw new ApiError('ValidationException', 'Member must have length less than or equal to 10', 400);
        const known = parametersOf(region);
        return { Parameters: names.flatMap((name) => known.get(name) ?? []), InvalidParameters: names.filter((name) => !known.has(name)) };
      },
    ),
    action(sdk.GetParametersByPath$, (input: sdk.GetParametersByPathRequest, { region }) => byPath(input, region, pageLimit())),
  ];
}
