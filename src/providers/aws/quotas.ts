import type { AwsClients } from './client.ts';

/** Quotas of running vCPUs: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html */
const quotas = [
  { name: 'standard', code: 'L-1216C47A' },
  { name: 'G', code: 'L-DB2E81BA' },
  { name: 'P', code: 'L-417A185B' },
  { name: 'G on spot', code: 'L-3819A6DF' },
  { name: 'P on spot', code: 'L-7212CCBC' },
] as const;

/**
 * vCPUs that the account may have at a time in a region, by family, as a line such as `64 standard, 0 G, 0 P`: new accounts have none for GPUs, and
 * hear of it when it is late. undefined when the credentials may not ask, as it is no more than a help.
 */
export async function quotaLine(
  clients: Pick<AwsClients, 'quota'>,
  region: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const answers = await Promise.allSettled(quotas.map(({ code }) => clients.quota(region, code, signal)));
  signal?.throwIfAborted();
  const parts = answers.flatMap((answer, index) =>
    answer.status === 'fulfilled' && answer.value !== undefined ? [`${answer.value} ${quotas[index]?.name}`] : [],
  );
  return parts.length === 0 ? undefined : parts.join(', ');
}
