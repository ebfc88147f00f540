import { sha256Hex } from '../sigv4/signature.ts';

/** A public machine image, the same in all regions except for its id. */
export interface ImageData {
  /** The public parameter of Systems Manager that names the newest image. */
  readonly parameter: string;
  readonly name: string;
  readonly description: string;
  readonly architecture: 'x86_64' | 'arm64';
  readonly ownerId: string;
  readonly ownerAlias: string | undefined;
  readonly rootDevice: string;
  /** Size of the root snapshot: the minimum size of a root disk. */
  readonly rootGb: number;
}

const both = [
  ['x86_64', 'amd64'],
  ['arm64', 'arm64'],
] as const;

const ubuntu: readonly ImageData[] = [['22.04', 'jammy', 'ebs-gp2'] as const, ['24.04', 'noble', 'ebs-gp3'] as const].flatMap(
  ([version, codename, disk]) =>
    both.map(([architecture, name]) => ({
      parameter: `/aws/service/canonical/ubuntu/server/${version}/stable/current/${name}/hvm/${disk}/ami-id`,
      name: `ubuntu/images/hvm-ssd${disk === 'ebs-gp3' ? '-gp3' : ''}/ubuntu-${codename}-${version}-${name}-server-20260301`,
      description: `Canonical, Ubuntu, ${version}, ${name} ${codename} image`,
      architecture,
      ownerId: '099720109477',
      ownerAlias: undefined,
      rootDevice: '/dev/sda1',
      rootGb: 8,
    })),
);

const deepLearning: readonly ImageData[] = ['22.04', '24.04'].flatMap((version) =>
  both.map(([architecture]) => ({
    parameter: `/aws/service/deeplearning/ami/${architecture}/base-oss-nvidia-driver-gpu-ubuntu-${version}/latest/ami-id`,
    name: `Deep Learning ${architecture === 'arm64' ? 'ARM64 ' : ''}Base OSS Nvidia Driver GPU AMI (Ubuntu ${version}) 20260301`,
    description: 'Supported EC2 instances: G4dn, G5, G6, Gr6, G6e, P4, P4de, P5, P5e, P5en, P6-B200.',
    architecture,
    ownerId: '898082745236',
    ownerAlias: 'amazon',
    rootDevice: '/dev/sda1',
    rootGb: 65,
  })),
);

const amazonLinux: readonly ImageData[] = both.map(([architecture]) => ({
  parameter: `/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-${architecture}`,
  name: `al2023-ami-2023.10.20260302.0-kernel-6.1-${architecture}`,
  description: `Amazon Linux 2023 AMI 2023.10.20260302.0 ${architecture} HVM kernel-6.1`,
  architecture,
  ownerId: '137112412989',
  ownerAlias: 'amazon',
  rootDevice: '/dev/xvda',
  rootGb: 8,
}));

/** The available public images. https://documentation.ubuntu.com/aws/, https://docs.aws.amazon.com/dlami/ */
export const imageData: readonly ImageData[] = [...ubuntu, ...deepLearning, ...amazonLinux];

/** An image's id in a region. */
export function imageId(image: ImageData, region: string): string {
  return `ami-${sha256Hex(`${region} ${image.parameter}`).slice(0, 17)}`;
}

/** The image with that id in that region. */
export function findImage(region: string, id: string): ImageData | undefined {
  return imageData.find((image) => imageId(image, region) === id);
}
