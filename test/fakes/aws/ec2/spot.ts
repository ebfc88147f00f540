import type {
  CancelSpotInstanceRequestsRequest,
  CancelSpotInstanceRequestsResult,
  DescribeSpotInstanceRequestsRequest,
  DescribeSpotInstanceRequestsResult,
  DescribeSpotPriceHistoryRequest,
  DescribeSpotPriceHistoryResult,
  SpotInstanceRequest,
  SpotPrice,
} from '@aws-sdk/client-ec2';
import type { Caller } from '../core/action.ts';
import { ApiError } from '../wire/api-error.ts';
import type { Ec2 } from './ec2.ts';
import { filtered, type FilterFields } from './filters.ts';
import { setRequest } from './instance-life.ts';
import { page } from './paging.ts';
import type { SpotRequestRecord } from './records.ts';
import type { Ec2Region } from './region.ts';
import { shownTags } from './tagging.ts';

const requestFields: FilterFields<SpotRequestRecord> = {
  'spot-instance-request-id': (one) => one.id,
  'instance-id': (one) => one.instanceId,
  state: (one) => one.state,
  'status-code': (one) => one.statusCode,
  type: (one) => one.type,
  'launched-availability-zone': (one) => one.zone,
};

function show(ec2: Ec2, region: Ec2Region, request: SpotRequestRecord): SpotInstanceRequest {
  const instance = region.instances.get(request.instanceId);
  return {
    SpotInstanceRequestId: request.id,
    CreateTime: new Date(request.createdAt),
    InstanceId: request.instanceId,
    LaunchedAvailabilityZone: request.zone,
    ...(request.maxPrice === '' ? {} : { SpotPrice: request.maxPrice }),
    State: request.state,
    Status: { Code: request.statusCode, Message: request.statusMessage, UpdateTime: new Date(request.statusAt) },
    Type: request.type,
    InstanceInterruptionBehavior: request.interruption,
    ProductDescription: 'Linux/UNIX',
    LaunchSpecification: {
      ...(instance === undefined ? {} : { ImageId: instance.imageId, InstanceType: instance.type.name }),
      Placement: { AvailabilityZone: request.zone },
    },
    Tags: shownTags(request, ec2.now),
  };
}

function requestsById(ec2: Ec2, region: Ec2Region, ids: readonly string[] | undefined): readonly SpotRequestRecord[] {
  if (ids === undefined) return [...region.spotRequests.values()].filter((request) => ec2.isVisible(request));
  return ids.map((id) => {
    const request = region.spotRequests.get(id);
    if (request !== undefined && ec2.isVisible(request)) return request;
    throw new ApiError('InvalidSpotInstanceRequestID.NotFound', `The spot instance request ID '${id}' does not exist`, 400);
  });
}

/** Spot requests with their state and status. */
export function describeSpotInstanceRequests(
  ec2: Ec2,
  input: DescribeSpotInstanceRequestsRequest,
  { region: name }: Caller,
): DescribeSpotInstanceRequestsResult {
  const region = ec2.region(name);
  const found = filtered(requestsById(ec2, region, input.SpotInstanceRequestIds), input.Filters, requestFields, ec2.now);
  const { items, ...rest } = page(found, input, { least: 5, most: 1_000 }, ec2.emulation.conduct.pageLimit);
  return { SpotInstanceRequests: items.map((request) => show(ec2, region, request)), ...rest };
}

/** Cancels requests; their instances continue. */
export function cancelSpotInstanceRequests(
  ec2: Ec2,
  input: CancelSpotInstanceRequestsRequest,
  { region: name }: Caller,
): CancelSpotInstanceRequestsResult {
  const requests = requestsById(ec2, ec2.region(name), input.SpotInstanceRequestIds ?? []);
  for (const request of requests) {
    if (request.state === 'active') {
      setRequest(
        request,
        'cancelled',
        'request-canceled-and-instance-running',
        'Your Spot request is canceled, but your instance is running.',
        ec2.now,
      );
    } else if (request.state === 'open')
      setRequest(request, 'cancelled', 'canceled-before-fulfillment', 'Your Spot request was canceled.', ec2.now);
  }
  return { CancelledSpotInstanceRequests: requests.map((request) => ({ SpotInstanceRequestId: request.id, State: 'cancelled' })) };
}

/** Current spot prices for each offered type and zone, newest first; the emulator keeps no price history. */
export function describeSpotPriceHistory(
  ec2: Ec2,
  input: DescribeSpotPriceHistoryRequest,
  { region: name }: Caller,
): DescribeSpotPriceHistoryResult {
  const region = ec2.region(name);
  const { InstanceTypes: types, AvailabilityZone: zone, ProductDescriptions: products = ['Linux/UNIX'] } = input;
  // Neither parameter changes the result: a price holds for the whole requested period.
  void input.StartTime;
  void input.EndTime;
  const offered = [...ec2.types.values()].filter((type) => types === undefined || types.some((requested) => requested === type.name));
  const rows = region.zones
    .filter((each) => zone === undefined || each === zone)
    .flatMap((each) =>
      offered
        .filter((type) => ec2.supply.isOffered(type.name, each))
        .map((type) => ({ id: `${each}/${type.name}`, each, type, tags: new Map() })),
    );
  const fields: FilterFields<(typeof rows)[number]> = {
    'availability-zone': (row) => row.each,
    'instance-type': (row) => row.type.name,
    'product-description': () => 'Linux/UNIX',
  };
  const linux = products.some((product) => product.startsWith('Linux/UNIX'));
  const { items, ...rest } = page(
    filtered(linux ? rows : [], input.Filters, fields, ec2.now),
    input,
    { least: 1, most: 1_000, usual: 1_000 },
    ec2.emulation.conduct.pageLimit,
  );
  const prices = items.map((row): SpotPrice => ({
    AvailabilityZone: row.each,
    InstanceType: row.type.name,
    ProductDescription: 'Linux/UNIX',
    SpotPrice: ec2.supply.spotPrice(row.type, row.each).toFixed(6),
    Timestamp: new Date(ec2.now),
  }));
  return { SpotPriceHistory: prices, NextToken: rest.NextToken ?? '' };
}
