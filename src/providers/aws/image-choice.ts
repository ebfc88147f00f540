import type { Resources } from '../../domain/task.ts';
import type { Offer } from '../provider.ts';

/** Where to look up an image. */
export type ImageChoice =
  | { readonly kind: 'given'; readonly id: string }
  | {
      readonly kind: 'usual';
      readonly architecture: Architecture;
      /** Public SSM parameters with the newest image's id, best first. */
      readonly parameters: readonly string[];
      /** For regions without these parameters; best first. */
      readonly searches: readonly ImageSearch[];
    };

/** Wildcards as in `DescribeImages`. */
interface ImageSearch {
  readonly owner: string;
  readonly name: string;
}

/** Canonical's account. Source: https://documentation.ubuntu.com/aws/aws-how-to/instances/find-ubuntu-images/ */
const canonical = '099720109477';

/**
 * Ubuntu LTS; with GPUs, AWS's Deep Learning Base image, which has NVIDIA's driver. Source of the parameters: the page
 * above, and https://docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html
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

/** The image for an offer, or why there is none: a clause that follows the machine's name. */
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

/** A clause; undefined: it can be an image. */
function imageProblem(id: string): string | undefined {
  if (id.startsWith('docker:')) return `image_id is the container '${id}', and programs run on machines of AWS without containers`;
  if (!/^ami-[0-9a-z]+$/.test(id)) return `image_id is '${id}', and images of AWS are called ami-...`;
  return undefined;
}

/** The properties of an image that a launch needs. */
export interface Image {
  readonly id: string;
  readonly rootDevice: string;
  /** Minimum size of the root disk, GB. */
  readonly sizeGb: number;
  readonly user: string;
}

/** Login user of the default images. */
export const usualUser = 'ubuntu';

/** By a part of the image's name. The first match applies. */
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

/** The login user, by an image's name and description. Most images derive from Ubuntu's. */
export function userOfImage(...texts: readonly (string | undefined)[]): string {
  for (const text of texts) {
    const found = text === undefined ? undefined : users.find(([name]) => name.test(text));
    if (found !== undefined) return found[1];
  }
  return usualUser;
}

type Architecture = 'x86_64' | 'arm64';

/**
 * By the type's name: a `g` after the generation's digit marks AWS's own ARM processors. `a1` is older than this rule,
 * the Grace machines (`p6e-gb200`) are newer.
 * Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
 */
export function architectureOf(instanceType: string): Architecture {
  const [family = ''] = instanceType.split('.');
  const [, attributes = ''] = /^[a-z]+\d+([a-z]*)/.exec(family) ?? [];
  return attributes.includes('g') || family === 'a1' || family.includes('-gb') ? 'arm64' : 'x86_64';
}

/**
 * Families whose accelerators need an `image_id`, because the default GPU image has no driver: NVIDIA before Turing,
 * AMD, and chips of AWS and others. Source: "supported EC2 instances" in the release notes of the Deep Learning Base
 * OSS Nvidia Driver GPU AMI.
 */
const withoutUsualDriver = /^(?:p2|p3|p3dn|g2|g3|g3s|g4ad|dl1|dl2q|vt1|f1|f2|inf\d\w*|trn\d\w*)\./;

/** Whether the default images support a type. */
export function hasUsualImage(instanceType: string): boolean {
  return !withoutUsualDriver.test(instanceType);
}
