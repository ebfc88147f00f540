import type { _InstanceType } from '@aws-sdk/client-ec2';

/** Whether a text has the form of a type's name: AWS adds types without a new SDK, so the SDK's list is incomplete. */
function isTypeName(text: string): text is _InstanceType {
  return /^[a-z\d-]+\.[a-z\d-]+$/.test(text);
}

/** Returns a type's name with the SDK's type; throws for an invalid form. */
function typeName(text: string): _InstanceType {
  if (isTypeName(text)) return text;
  throw new Error(`${text} is no type of instance`);
}

/** A machine type. */
export interface InstanceTypeData {
  readonly name: _InstanceType;
  readonly vcpus: number;
  readonly memoryGb: number;
  readonly architecture: 'x86_64' | 'arm64';
  readonly gpu: { readonly name: string; readonly manufacturer: string; readonly count: number; readonly memoryGb: number } | undefined;
  /** The type family that shares a vCPU quota. */
  readonly quota: 'standard' | 'g' | 'p' | 'inf' | 'trn';
  /** Approximate on-demand price in us-east-1, US dollars; spot prices are fractions of it. */
  readonly hourlyUsd: number;
}

const sizes: Readonly<Record<string, number>> = {
  large: 2,
  xlarge: 4,
  '2xlarge': 8,
  '4xlarge': 16,
  '8xlarge': 32,
  '12xlarge': 48,
  '16xlarge': 64,
  '24xlarge': 96,
};

/** Families whose sizes differ only in size: GiB and US dollars for each vCPU. */
const families: readonly (readonly [family: string, gbPerCpu: number, usdPerCpu: number, architecture: 'x86_64' | 'arm64'])[] = [
  ['c5', 2, 0.0425, 'x86_64'],
  ['c6i', 2, 0.0425, 'x86_64'],
  ['c6a', 2, 0.03825, 'x86_64'],
  ['c6g', 2, 0.034, 'arm64'],
  ['c7i', 2, 0.0446, 'x86_64'],
  ['c7a', 2, 0.0513, 'x86_64'],
  ['c7g', 2, 0.0363, 'arm64'],
  ['m5', 4, 0.048, 'x86_64'],
  ['m6i', 4, 0.048, 'x86_64'],
  ['m6a', 4, 0.0432, 'x86_64'],
  ['m6g', 4, 0.0385, 'arm64'],
  ['m7i', 4, 0.0504, 'x86_64'],
  ['m7a', 4, 0.058, 'x86_64'],
  ['m7g', 4, 0.0408, 'arm64'],
  ['r5', 8, 0.063, 'x86_64'],
  ['r6i', 8, 0.063, 'x86_64'],
  ['r7i', 8, 0.0662, 'x86_64'],
  ['r7g', 8, 0.0536, 'arm64'],
];

/** Burstable types have their own ratio for each size: vCPUs and GiB. */
const burstable: Readonly<Record<string, readonly [number, number]>> = {
  nano: [2, 0.5],
  micro: [2, 1],
  small: [2, 2],
  medium: [2, 4],
  large: [2, 8],
  xlarge: [4, 16],
  '2xlarge': [8, 32],
};

/** `name vcpus GiB gpu count GiB-of-one USD`. https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html */
const gpuTypes = `
g4dn.xlarge 4 16 T4 1 16 0.526
g4dn.2xlarge 8 32 T4 1 16 0.752
g4dn.4xlarge 16 64 T4 1 16 1.204
g4dn.8xlarge 32 128 T4 1 16 2.176
g4dn.12xlarge 48 192 T4 4 16 3.912
g4dn.16xlarge 64 256 T4 1 16 4.352
g4dn.metal 96 384 T4 8 16 7.824
g5.xlarge 4 16 A10G 1 24 1.006
g5.2xlarge 8 32 A10G 1 24 1.212
g5.4xlarge 16 64 A10G 1 24 1.624
g5.8xlarge 32 128 A10G 1 24 2.448
g5.12xlarge 48 192 A10G 4 24 5.672
g5.16xlarge 64 256 A10G 1 24 4.096
g5.24xlarge 96 384 A10G 4 24 8.144
g5.48xlarge 192 768 A10G 8 24 16.288
g6.xlarge 4 16 L4 1 24 0.8048
g6.2xlarge 8 32 L4 1 24 0.9776
g6.4xlarge 16 64 L4 1 24 1.3232
g6.8xlarge 32 128 L4 1 24 2.0144
g6.12xlarge 48 192 L4 4 24 4.6016
g6.16xlarge 64 256 L4 1 24 3.3968
g6.24xlarge 96 384 L4 4 24 6.6752
g6.48xlarge 192 768 L4 8 24 13.3504
g6e.xlarge 4 32 L40S 1 48 1.861
g6e.2xlarge 8 64 L40S 1 48 2.24208
g6e.4xlarge 16 128 L40S 1 48 3.00424
g6e.8xlarge 32 256 L40S 1 48 4.52856
g6e.12xlarge 48 384 L40S 4 48 10.49264
g6e.16xlarge 64 512 L40S 1 48 7.57719
g6e.24xlarge 96 768 L40S 4 48 15.06559
g6e.48xlarge 192 1536 L40S 8 48 30.13118
p3.2xlarge 8 61 V100 1 16 3.06
p3.8xlarge 32 244 V100 4 16 12.24
p3.16xlarge 64 488 V100 8 16 24.48
p4d.24xlarge 96 1152 A100 8 40 21.9576
p4de.24xlarge 96 1152 A100 8 80 27.44705
p5.4xlarge 16 256 H100 1 80 6.88
p5.48xlarge 192 2048 H100 8 80 55.04
p5e.48xlarge 192 2048 H200 8 141 63.296
p5en.48xlarge 192 2048 H200 8 141 63.296
p6-b200.48xlarge 192 2048 B200 8 179 113.9328
`;

function gpuType(line: string): InstanceTypeData {
  const [name = '', vcpus, memory, gpu = '', count, gpuMemory, usd] = line.split(' ');
  return {
    name: typeName(name),
    vcpus: Number(vcpus),
    memoryGb: Number(memory),
    architecture: 'x86_64',
    gpu: { name: gpu, manufacturer: 'NVIDIA', count: Number(count), memoryGb: Number(gpuMemory) },
    quota: name.startsWith('g') ? 'g' : 'p',
    hourlyUsd: Number(usd),
  };
}

function cpuTypes(): readonly InstanceTypeData[] {
  const regular = families.flatMap(([family, gb, usd, architecture]) =>
    Object.entries(sizes).map(([size, vcpus]) => ({
      name: typeName(`${family}.${size}`),
      vcpus,
      memoryGb: vcpus * gb,
      architecture,
      hourlyUsd: vcpus * usd,
    })),
  );
  const bursting = [['t3', 'x86_64'] as const, ['t3a', 'x86_64'] as const, ['t4g', 'arm64'] as const].flatMap(([family, architecture]) =>
    Object.entries(burstable).map(([size, [vcpus, memoryGb]]) => ({
      name: typeName(`${family}.${size}`),
      vcpus,
      memoryGb,
      architecture,
      hourlyUsd: memoryGb * 0.0104,
    })),
  );
  return [...regular, ...bursting].map((type) => ({ ...type, gpu: undefined, quota: 'standard' }));
}

/** The default types: those commonly used for serving. A test can add others. */
export const instanceTypeData: readonly InstanceTypeData[] = [...cpuTypes(), ...gpuTypes.trim().split('\n').map(gpuType)];
