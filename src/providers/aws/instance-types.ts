/** What a processor runs, as AWS's images call it. */
export type Architecture = 'x86_64' | 'arm64';

/**
 * By the naming of instance types: after the generation's digit a `g` stands for AWS's own ARM processors; `a1` and the Grace machines (`p6e-gb200`)
 * are older and newer than that. Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-type-names.html
 */
export function architectureOf(instanceType: string): Architecture {
  const [family = ''] = instanceType.split('.');
  const [, attributes = ''] = /^[a-z]+\d+([a-z]*)/.exec(family) ?? [];
  return attributes.includes('g') || family === 'a1' || family.includes('-gb') ? 'arm64' : 'x86_64';
}

/**
 * Families whose accelerators the usual GPU image has no driver for: NVIDIA before Turing, AMD, and AWS's and others' own chips. They need an
 * `image_id`. Source: the "supported EC2 instances" of the Deep Learning Base OSS Nvidia Driver GPU AMI's release notes.
 */
const withoutUsualDriver = /^(?:p2|p3|p3dn|g2|g3|g3s|g4ad|dl1|dl2q|vt1|f1|f2|inf\d\w*|trn\d\w*)\./;

/** Whether the usual images serve a type of machine. */
export function hasUsualImage(instanceType: string): boolean {
  return !withoutUsualDriver.test(instanceType);
}
