import { z } from 'zod';
import { reading, type Reading } from './kit.ts';

/** The location of a machine; an absent part means any. */
export interface InfraChoice {
  readonly cloud: string | undefined;
  readonly region: string | undefined;
  readonly zone: string | undefined;
}

const form =
  'must be CLOUD, CLOUD/REGION or CLOUD/REGION/ZONE; * stands for any\nWrite for instance: infra: aws/us-east-1 or infra: k8s/my-context';

/** Names of the parts of `infra`, and of `cloud`, `region` and `zone`. */
const part = /^[A-Za-z0-9*][A-Za-z0-9._:@-]*$/;

/** Characters; the longest Kubernetes contexts have about 150. */
const maxLength = 300;

/** `aws`, `gcp/us-central1/us-central1-a`, `k8s/context/with/slashes`, `ssh/pool`. Clouds in any case. */
function readInfra(text: string): Reading<InfraChoice> {
  if (text.length > maxLength) return { problem: form };
  const [first = '', ...rest] = text.trim().split('/');
  const cloud = cloudName(first);
  if (!part.test(first) || (first.includes('*') && first !== '*')) return { problem: form };
  // A Kubernetes context or a pool of SSH hosts may have slashes in its name, and has no zones.
  if (cloud === 'kubernetes' || cloud === 'ssh') {
    const context = rest.join('/');
    if (rest.length > 0 && (context === '' || /\s/.test(context))) return { problem: form };
    return { ok: { cloud, region: wild(context), zone: undefined } };
  }
  const [region, zone, ...more] = rest;
  if (more.length > 0 || rest.some((each) => !part.test(each))) return { problem: form };
  return { ok: { cloud, region: wild(region), zone: wild(zone) } };
}

/** The provider's internal name: lower case, one name per provider. */
export function cloudName(text: string): string | undefined {
  const lower = text.toLowerCase();
  return wild(lower === 'k8s' ? 'kubernetes' : lower);
}

/** `*` and an empty value mean any location. */
export function wild(text: string | undefined): string | undefined {
  return text === '*' || text === '' ? undefined : text;
}

/** The field `infra`. */
export const infra = reading(z.string(), readInfra);

/** The fields `cloud`, `region` and `zone`. */
export const infraPart = z.string().regex(part, 'is not the name of a provider, region or zone');
