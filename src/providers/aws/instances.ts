import type { MachineNotice } from '../provider.ts';
import type { NoticeProbe, VmMachine, VmQuery } from '../vm/driver.ts';
import type { Ec2, Instance } from './client.ts';
import { noticeOf, statusOf } from './machine-status.ts';
import { livingStates, readTagList, tagFilters } from './tags.ts';
import { isObject, parseJson } from '../../shared/json.ts';

/** Maximum number of values in a filter. */
const idsAtOnce = 200;

/** Only queries by id return notices, because notices need another call. */
export async function listInstances(ec2: Ec2, region: string, query: VmQuery): Promise<readonly VmMachine[]> {
  if ('tags' in query) {
    const found = await ec2.instances([...tagFilters(query.tags), ...(query.isLiving ? [livingStates] : [])]);
    return found.flatMap((instance) => machineOf(region, instance));
  }
  const instances: Instance[] = [];
  for (const Values of inChunks(query.ids)) instances.push(...(await ec2.instances([{ Name: 'instance-id', Values }])));
  const notices = await noticesOf(ec2, instances);
  return instances.flatMap((instance) => machineOf(region, instance, notices));
}

function machineOf(region: string, instance: Instance, notices?: ReadonlyMap<string, MachineNotice>): readonly VmMachine[] {
  const { InstanceId: instanceId, InstanceLifecycle, Tags, PublicIpAddress, PrivateIpAddress, ClientToken } = instance;
  if (instanceId === undefined) return [];
  return [
    {
      region,
      instanceId,
      status: statusOf(instance, region),
      isSpot: InstanceLifecycle === 'spot',
      tags: readTagList(Tags),
      publicHost: filled(PublicIpAddress),
      privateHost: filled(PrivateIpAddress),
      notice: notices?.get(instanceId),
      requestToken: ClientToken,
    },
  ];
}

const filled = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

async function noticesOf(ec2: Ec2, instances: readonly Instance[]): Promise<ReadonlyMap<string, MachineNotice>> {
  const spot = instances
    .filter((one) => one.InstanceLifecycle === 'spot' && one.State?.Name === 'running')
    .flatMap((one) => one.InstanceId ?? []);
  const notices = new Map<string, MachineNotice>();
  for (const Values of inChunks(spot)) {
    for (const request of await ec2.spotRequests([{ Name: 'instance-id', Values }])) {
      const notice = noticeOf(request);
      if (notice !== undefined && request.InstanceId !== undefined) notices.set(request.InstanceId, notice);
    }
  }
  return notices;
}

function inChunks(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / idsAtOnce) }, (_, index) => ids.slice(index * idsAtOnce, (index + 1) * idsAtOnce));
}

/** A machine's metadata: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html */
const metadata = 'http://169.254.169.254';

/** The metadata service requires a token. Without a recommendation it answers 404, and the script prints nothing. */
const script = `
token=$(curl -s -f -m 3 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$1/latest/api/token") || exit 0
curl -s -f -m 3 -H "X-aws-ec2-metadata-token: $token" "$1/latest/meta-data/events/recommendations/rebalance"
exit 0`;

/**
 * AWS sends rebalance recommendations only to the machines, usually long before the interruption notice of two minutes:
 * a poll every half minute suffices. Tests replace `base`.
 */
export function rebalanceProbe(base: string = metadata): NoticeProbe {
  return { script, args: [base], everyMs: 30_000, parse: parseRecommendation };
}

function parseRecommendation(text: string): MachineNotice | undefined {
  const value = parseJson(text);
  if (!isObject(value) || typeof value['noticeTime'] !== 'string') return undefined;
  const at = Date.parse(value['noticeTime']);
  return { kind: 'rebalance', at: Number.isNaN(at) ? undefined : at };
}
