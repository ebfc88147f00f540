import { z } from 'zod';

/** A machine that was thought of, with the reason for or against it. */
const plannedOfferView = z.strictObject({
  provider: z.string(),
  region: z.string(),
  zone: z.string().nullable(),
  instanceType: z.string(),
  nodes: z.int().describe('So many such machines make up one replica; prices are of all of them, the rest is of each'),
  cpus: z.number(),
  memoryGb: z.number(),
  accelerators: z.string().nullable().describe('NAME:COUNT'),
  spot: z.boolean(),
  hourlyUsd: z.number(),
  monthlyUsd: z.number().describe('Of 730 hours'),
  alternative: z.int().describe("Which alternative of the file's resources it is for, counted from 1"),
  verdict: z.enum(['chosen', 'possible', 'refused', 'excluded']),
  replicas: z.array(z.int()).readonly().describe('Numbers of the replicas that it is chosen for'),
  why: z.string(),
});

/** Where replicas would be put now, and why there. */
export const planView = z.strictObject({
  replicas: z.int(),
  offers: z.array(plannedOfferView).readonly().describe('Best first'),
  places: z.array(z.strictObject({ name: z.string(), takesPart: z.boolean(), why: z.string().nullable() })).readonly(),
  hourlyUsd: z.number(),
  monthlyUsd: z.number(),
  notes: z.array(z.string()).readonly(),
  isMisnamed: z.boolean().optional().describe('There is no offer, as the notes say which names of places, or of their parts, are wrong'),
});
