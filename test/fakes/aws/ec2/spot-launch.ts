import type { InstanceMarketOptionsRequest, TagSpecification } from '@aws-sdk/client-ec2';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import type { SpotRequestRecord } from './records.ts';
import type { Ec2Region } from './region.ts';
import { tagsFor } from './tagging.ts';

/** Market options of a launch. */
export interface SpotPlan {
  readonly type: SpotRequestRecord['type'];
  readonly interruption: SpotRequestRecord['interruption'];
  /** US dollars an hour; undefined means the on-demand price. */
  readonly maxPrice: number | undefined;
}

/** Reads the market of a launch; undefined on demand. */
export function planSpot(market: InstanceMarketOptionsRequest | undefined): SpotPlan | undefined {
  if (market === undefined) return undefined;
  if (market.MarketType !== 'spot')
    throw new ApiError('InvalidParameterValue', `Invalid value '${market.MarketType ?? ''}' for MarketType.`, 400);
  const type = market.SpotOptions?.SpotInstanceType ?? 'one-time';
  const interruption = market.SpotOptions?.InstanceInterruptionBehavior ?? 'terminate';
  const price = market.SpotOptions?.MaxPrice;
  if (type === 'one-time' && interruption !== 'terminate') {
    throw new ApiError(
      'InvalidParameterCombination',
      `${interruption} interruption behavior is not supported with one-time Spot requests`,
      400,
    );
  }
  const maxPrice = price === undefined ? undefined : Number(price);
  if (maxPrice !== undefined && !(maxPrice > 0))
    throw new ApiError('InvalidParameterValue', `Invalid value '${price ?? ''}' for MaxPrice.`, 400);
  return { type, interruption, maxPrice };
}

/** The spot request that RunInstances creates implicitly, fulfilled at once. */
export function makeSpotRequest(
  ec2: Ec2,
  region: Ec2Region,
  plan: SpotPlan,
  instanceId: string,
  zone: string,
  specifications: readonly TagSpecification[] | undefined,
): SpotRequestRecord {
  const request: SpotRequestRecord = {
    id: ec2.id('sir').slice(0, 'sir-'.length + 8),
    visibleAt: ec2.visibleAt('instance'),
    tags: tagsFor(ec2, 'spot-instances-request', specifications),
    zone,
    instanceId,
    type: plan.type,
    maxPrice: String(plan.maxPrice ?? ''),
    interruption: plan.interruption,
    createdAt: ec2.now,
    state: 'active',
    statusCode: 'fulfilled',
    statusMessage: 'Your spot request is fulfilled.',
    statusAt: ec2.now,
  };
  region.spotRequests.set(request.id, request);
  return request;
}
