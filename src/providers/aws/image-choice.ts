import type { Resources } from '../../domain/task.ts';
import type { Offer } from '../provider.ts';
import { architectureOf, hasUsualImage, type Architecture } from './instance-types.ts';

/** Where the image of a machine is to be looked up. */
export type ImageChoice =
  | { readonly kind: 'given'; readonly id: string }
  | {
      readonly kind: 'usual';
      readonly architecture: Architecture;
      /** Public SSM parameters that hold the id of the newest image, best first. */
      readonly parameters: readonly string[];
      /** Where parameters are not served: who publishes the images and what their names are like, best first. */
      readonly searches: readonly ImageSearch[];
    };

/** Images by publisher and name, with the wildcards of `DescribeImages`. */
export interface ImageSearch {
  readonly owner: string;
  readonly name: string;
}

/** Canonical's account, which publishes Ubuntu: https://documentation.ubuntu.com/aws/aws-how-to/instances/find-ubuntu-images/ */
const canonical = '099720109477';

/**
 * Ubuntu LTS, and with GPUs AWS's Deep Learning Base image with NVIDIA's driver on the same. Source of the parameters: the page above, and
 * https://docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html
 */
function usualImage(architecture: Architecture, hasGpu: boolean): ImageChoice {
  const cpu = architecture === 'arm64' ? 'arm64' : 'amd64';
  const releases = [
    { version: '24.04', name: 'noble', disk: 'gp3' },
    { version: '22.04', name: 'jammy', disk: 'gp2' },
  ];
  if (!hasGpu) {
    return {
      kind: 'usual',
      architecture,
      parameters: releases.map(
        ({ version, disk }) => `/aws/service/canonical/ubuntu/server/${version}/stable/current/${cpu}/hvm/ebs-${disk}/ami-id`,
      ),
      searches: releases.map(({ version, name }) => ({
        owner: canonical,
        name: `ubuntu/images/hvm-ssd*/ubuntu-${name}-${version}-${cpu}-server-*`,
      })),
    };
  }
  const prefix =
    architecture === 'arm64' ? 'Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI' : 'Deep Learning Base OSS Nvidia Driver GPU AMI';
  return {
    kind: 'usual',
    architecture,
    parameters: releases.map(
      ({ version }) => `/aws/service/deeplearning/ami/${architecture}/base-oss-nvidia-driver-gpu-ubuntu-${version}/latest/ami-id`,
    ),
    searches: releases.map(({ version }) => ({ owner: 'amazon', name: `${prefix} (Ubuntu ${version}) *` })),
  };
}

/** The image for an offer, or why there is none, as a clause that follows the machine's name. */
export function chooseImage(
  imageId: Resources['imageId'],
  offer: Pick<Offer, 'region' | 'instanceType' | 'accelerator'>,
): ImageChoice | string {
  const id = typeof imageId === 'object' ? imageId[offer.region] : imageId;
  if (imageId !== undefined && id === undefined) return `image_id names no image for ${offer.region}`;
  if (id === undefined) {
    if (!hasUsualImage(offer.instanceType)) return 'there is no usual image with a driver for its accelerators; give an image_id';
    return usualImage(architectureOf(offer.instanceType), offer.accelerator !== undefined);
  }
  const problem = imageProblem(id);
  return problem ?? { kind: 'given', id };
}

/** Why a text cannot be an image of AWS, as a clause; undefined when it can. */
function imageProblem(id: string): string | undefined {
  if (id.startsWith('docker:')) return `image_id is the container '${id}', and programs run on machines of AWS without containers`;
  if (!/^ami-[0-9a-z]+$/.test(id)) return `image_id is '${id}', and images of AWS are called ami-...`;
  return undefined;
}

/** What is to be known of an image to start a machine from it. */
export interface Image {
  readonly id: string;
  readonly rootDevice: string;
  /** GB that the root disk has at least. */
  readonly sizeGb: number;
  /** Whom to log in as. */
  readonly user: string;
}

/** Users that publishers put the key for, by what their images' names begin with or contain. The first that fits. */
const users: readonly (readonly [RegExp, string])[] = [
  [/ubuntu/i, 'ubuntu'],
  [/amzn|al2023|amazon[- ]linux|\brhel|red ?hat|suse/i, 'ec2-user'],
  [/debian/i, 'admin'],
  [/rocky/i, 'rocky'],
  [/almalinux/i, 'ec2-user'],
  [/centos/i, 'centos'],
  [/fedora/i, 'fedora'],
  [/bitnami/i, 'bitnami'],
];

/** Whom to log in as, from an image's name and description; `ubuntu` when they say nothing, as most images are made from Ubuntu's. */
export function userOfImage(...texts: readonly (string | undefined)[]): string {
  for (const text of texts) {
    const found = text === undefined ? undefined : users.find(([name]) => name.test(text));
    if (found !== undefined) return found[1];
  }
  return 'ubuntu';
}
