import { ProviderRefusal } from '../provider-refusal.ts';
import type { Offer } from '../provider.ts';
import type { AwsClients, AwsImage, Ec2 } from './client.ts';
import { awsCode } from './errors.ts';
import { type Image, type ImageChoice, architectureOf, userOfImage, usualUser } from './image-choice.ts';

interface ImageLookup {
  readonly clients: Pick<AwsClients, 'parameters'>;
  readonly ec2: Ec2;
  readonly offer: Offer;
  readonly signal: AbortSignal | undefined;
}

/** Throws a refusal when the region has no suitable image. */
export async function findImage(choice: ImageChoice, lookup: ImageLookup): Promise<Image> {
  const { offer } = lookup;
  const image = choice.kind === 'given' ? await describe(lookup.ec2, choice.id) : await usual(choice, lookup);
  if (image === undefined) {
    const what = choice.kind === 'given' ? `the image ${choice.id}` : 'an image of Ubuntu for it';
    throw refusal(offer, `there is not ${what} in ${offer.region}`);
  }
  const architecture = architectureOf(offer.instanceType);
  // AWS's names for the architectures of Macs begin with the usual names.
  if (image.Architecture !== undefined && !image.Architecture.startsWith(architecture))
    throw refusal(offer, `the image ${image.ImageId} is for ${image.Architecture}, and the machine is ${architecture}`);
  const rootDevice = image.RootDeviceName ?? '/dev/sda1';
  const root = image.BlockDeviceMappings?.find(({ DeviceName }) => DeviceName === rootDevice);
  return {
    id: image.ImageId ?? '',
    rootDevice,
    sizeGb: root?.Ebs?.VolumeSize ?? 0,
    user: choice.kind === 'usual' ? usualUser : userOfImage(image.Name, image.Description, image.PlatformDetails),
  };
}

async function describe(ec2: Ec2, id: string): Promise<AwsImage | undefined> {
  const [image] = await ec2.images({ ImageIds: [id] });
  return image;
}

async function usual(choice: ImageChoice & { kind: 'usual' }, { clients, ec2, offer, signal }: ImageLookup): Promise<AwsImage | undefined> {
  const ids = await published(clients, offer.region, choice.parameters, signal);
  for (const id of ids) {
    const image = await describe(ec2, id);
    if (image !== undefined) return image;
  }
  for (const { owner, name } of choice.searches) {
    const images = await ec2.images({
      Owners: [owner],
      Filters: [
        { Name: 'name', Values: [name] },
        { Name: 'architecture', Values: [choice.architecture] },
        { Name: 'state', Values: ['available'] },
      ],
    });
    const newest = images.toSorted((a, b) => ((a.CreationDate ?? '') < (b.CreationDate ?? '') ? 1 : -1))[0];
    if (newest !== undefined) return newest;
  }
  return undefined;
}

/** Empty in a region without such parameters. */
async function published(
  clients: Pick<AwsClients, 'parameters'>,
  region: string,
  names: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  try {
    const values = await clients.parameters(region, [...names], signal);
    return names.flatMap((name) => values.get(name) ?? []);
  } catch (error) {
    if (noParameters.has(awsCode(error) ?? '')) return [];
    throw error;
  }
}

/** Services without this action or these parameters answer with these codes. */
const noParameters: ReadonlySet<string> = new Set(['UnknownOperationException', 'InvalidAction', 'NotImplemented', 'ParameterNotFound']);

function refusal(offer: Offer, why: string): ProviderRefusal {
  return new ProviderRefusal('unsupported', 'region', `AWS gives no ${offer.instanceType} in ${offer.region}: ${why}.`, {
    hint: 'Check image_id in the file: it may name one image for each region.',
  });
}
