import * as sdk from '@aws-sdk/client-service-quotas';
import { action, type Action } from '../core/action.ts';
import type { Ec2 } from '../ec2/ec2.ts';
import { ApiError } from '../wire/api-error.ts';

/** Quotas of running vCPUs. https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html */
const quotas = [
  { code: 'L-1216C47A', name: 'Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances', group: 'standard', spot: false },
  { code: 'L-DB2E81BA', name: 'Running On-Demand G and VT instances', group: 'g', spot: false },
  { code: 'L-417A185B', name: 'Running On-Demand P instances', group: 'p', spot: false },
  { code: 'L-34B43A08', name: 'All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests', group: 'standard', spot: true },
  { code: 'L-3819A6DF', name: 'All G and VT Spot Instance Requests', group: 'g', spot: true },
  { code: 'L-7212CCBC', name: 'All P4, P3 and P2 Spot Instance Requests', group: 'p', spot: true },
] as const;

/** All emulated actions of Service Quotas: those for EC2. */
export function quotaActions(ec2: Ec2): readonly Action[] {
  const show = (quota: (typeof quotas)[number], region: string): sdk.ServiceQuota => ({
    ServiceCode: 'ec2',
    ServiceName: 'Amazon Elastic Compute Cloud (Amazon EC2)',
    QuotaCode: quota.code,
    QuotaName: quota.name,
    Value: ec2.supply.quota(region, quota.group, quota.spot),
    Unit: 'None',
    Adjustable: true,
    GlobalQuota: false,
  });
  return [
    action(
      sdk.GetServiceQuota$,
      ({ ServiceCode: service, QuotaCode: code }: sdk.GetServiceQuotaRequest, { region }): sdk.GetServiceQuotaResponse => {
        const quota = quotas.find((one) => service === 'ec2' && one.code === code);
        if (quota === undefined)
          throw new ApiError('NoSuchResourceException', 'The request failed because the specified service quota does not exist.', 400);
        return { Quota: show(quota, region) };
      },
    ),
    action(sdk.ListServiceQuotas$, ({ ServiceCode: service }: sdk.ListServiceQuotasRequest, { region }): sdk.ListServiceQuotasResponse => {
      if (service !== 'ec2')
        throw new ApiError('NoSuchResourceException', 'The request failed because the specified service does not exist.', 400);
      return { Quotas: quotas.map((quota) => show(quota, region)) };
    }),
  ];
}
