import { didYouMean } from '../shared/did-you-mean.ts';

interface AcceleratorFacts {
  /** GB of one accelerator; undefined where it depends on the number in a slice. */
  readonly memoryGb: number | undefined;
  readonly manufacturer: 'NVIDIA' | 'AMD' | 'Intel' | 'Google';
}

const nvidia = (memoryGb: number): AcceleratorFacts => ({ memoryGb, manufacturer: 'NVIDIA' });
const tpu: AcceleratorFacts = { memoryGb: undefined, manufacturer: 'Google' };

/**
 * Names as in SkyPilot's catalogue, and memory from the makers' data sheets. Where that catalogue has two names for one
 * board (`A6000`, `RTXA6000`), one is here and the other is an alias.
 */
const accelerators: Readonly<Record<string, AcceleratorFacts>> = {
  A10: nvidia(24),
  A100: nvidia(40),
  'A100-80GB': nvidia(80),
  'A100-80GB-SXM': nvidia(80),
  A10G: nvidia(24),
  A16: nvidia(16),
  A2: nvidia(16),
  A30: nvidia(24),
  A40: nvidia(48),
  A4000: nvidia(16),
  A4500: nvidia(20),
  A5000: nvidia(24),
  A6000: nvidia(48),
  A800: nvidia(80),
  B200: nvidia(180),
  B300: nvidia(288),
  GH200: nvidia(96),
  GTX1660S: nvidia(6),
  'Gaudi HL-205': { memoryGb: 32, manufacturer: 'Intel' },
  H100: nvidia(80),
  'H100-MEGA': nvidia(80),
  'H100-NVL': nvidia(94),
  'H100-NVLINK': nvidia(80),
  'H100-SXM': nvidia(80),
  H200: nvidia(141),
  'H200-SXM': nvidia(141),
  K80: nvidia(12),
  L4: nvidia(24),
  L40: nvidia(48),
  L40S: nvidia(48),
  M4000: nvidia(8),
  M60: nvidia(8),
  MI300X: { memoryGb: 192, manufacturer: 'AMD' },
  P100: nvidia(16),
  P4: nvidia(8),
  P4000: nvidia(8),
  RTX3060: nvidia(12),
  RTX3070: nvidia(8),
  RTX3080: nvidia(10),
  RTX3090: nvidia(24),
  'RTX4000-Ada': nvidia(20),
  RTX4090: nvidia(24),
  RTX5060: nvidia(8),
  RTX5090: nvidia(32),
  RTX6000: nvidia(24),
  'RTX6000-Ada': nvidia(48),
  RTX8000: nvidia(48),
  RTXPRO6000S: nvidia(96),
  RTXPRO6000WS: nvidia(96),
  'Radeon MI25': { memoryGb: 16, manufacturer: 'AMD' },
  'Radeon Pro V520': { memoryGb: 8, manufacturer: 'AMD' },
  T4: nvidia(16),
  T4g: nvidia(16),
  V100: nvidia(16),
  'V100-32GB': nvidia(32),
  'tpu-v2': tpu,
  'tpu-v3': tpu,
  'tpu-v4': tpu,
  'tpu-v5litepod': tpu,
  'tpu-v5p': tpu,
  'tpu-v6e': tpu,
};

/** Further names in plain form (see `plain`), from other catalogues and drivers, and their canonical names. */
const aliases: Readonly<Record<string, string>> = {
  a10040gb: 'A100',
  a100sxm440gb: 'A100',
  a100pcie40gb: 'A100',
  a100sxm480gb: 'A100-80GB',
  a100pcie80gb: 'A100-80GB',
  b200180gb: 'B200',
  gaudihl205: 'Gaudi HL-205',
  h10080gb: 'H100',
  h10080gbhbm3: 'H100',
  h100mega80gb: 'H100-MEGA',
  h200141gb: 'H200',
  mi25: 'Radeon MI25',
  prov520: 'Radeon Pro V520',
  rtx6000adageneration: 'RTX6000-Ada',
  rtxa4000: 'A4000',
  rtxa4500: 'A4500',
  rtxa5000: 'A5000',
  rtxa6000: 'A6000',
  quadrortx6000: 'RTX6000',
  quadrortx8000: 'RTX8000',
  tpuv5e: 'tpu-v5litepod',
  v10016gb: 'V100',
  v100sxm216gb: 'V100',
  v100sxm232gb: 'V100-32GB',
};

/** Every canonical name, in alphabetical order. */
export const acceleratorNames: readonly string[] = Object.keys(accelerators);

/** Ignores case, maker, product line and word separators. */
function plain(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/\b(?:nvidia|amd|intel|tesla|geforce|radeon)\b|(?:nvidia|amd|tesla|geforce|radeon)(?=[-_ ])/g, '')
    .replaceAll(/[^a-z0-9]/g, '');
}

const canonical: ReadonlyMap<string, string> = new Map([
  ...Object.entries(aliases),
  ...acceleratorNames.map((name): [string, string] => [plain(name), name]),
]);

/** The catalogue's name of an accelerator: `tesla-t4` is `T4`, `rtx_4090` is `RTX4090`. undefined for unknown names. */
export function canonicalAccelerator(name: string): string | undefined {
  return canonical.get(plain(name));
}

/** The known name that the user probably meant by an unknown name. */
export function suggestAccelerator(name: string): string | undefined {
  return canonicalAccelerator(name) === undefined ? didYouMean(name, acceleratorNames) : undefined;
}

const nearestShown = 3;

/** Known names with a spelling close to an unknown name, nearest first. `others` counts as known too. */
export function nearestAccelerators(name: string, others: readonly string[] = []): readonly string[] {
  const found: string[] = [];
  while (found.length < nearestShown) {
    const left = [...new Set([...acceleratorNames, ...others])].filter((one) => !found.some((shown) => isSameAccelerator(shown, one)));
    const next = didYouMean(name, left);
    if (next === undefined) break;
    found.push(next);
  }
  return found;
}

/** GB of memory of one accelerator; undefined for unknown names and for kinds without a single number (TPUs). */
export function acceleratorMemoryGb(name: string): number | undefined {
  return factsOf(name)?.memoryGb;
}

/** Maker of the accelerator, such as `NVIDIA`; undefined for unknown names. */
export function acceleratorManufacturer(name: string): string | undefined {
  return factsOf(name)?.manufacturer;
}

/** Whether two names mean the same kind. Unknown names are compared as text, without case and separators. */
export function isSameAccelerator(one: string, other: string): boolean {
  const [first, second] = [plain(one), plain(other)];
  return first === second || (canonical.get(first) ?? first) === (canonical.get(second) ?? second);
}

function factsOf(name: string): AcceleratorFacts | undefined {
  const known = canonicalAccelerator(name);
  return known === undefined ? undefined : accelerators[known];
}
