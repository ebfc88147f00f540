/** A region as an account sees it. */
export interface RegionData {
  readonly name: string;
  /** Letters of its availability zones. */
  readonly zones: string;
  /** Whether an account must opt in; such regions are disabled unless the emulator's options enable them. */
  readonly optIn: boolean;
}

const always =
  'us-east-1:abcdef us-east-2:abc us-west-1:ab us-west-2:abcd ca-central-1:abd eu-central-1:abc eu-north-1:abc eu-west-1:abc eu-west-2:abc eu-west-3:abc ' +
  'ap-northeast-1:acd ap-northeast-2:abcd ap-northeast-3:abc ap-south-1:abc ap-southeast-1:abc ap-southeast-2:abc sa-east-1:abc';
const onRequest =
  'af-south-1:abc ap-east-1:abc ap-east-2:abc ap-south-2:abc ap-southeast-3:abc ap-southeast-4:abc ap-southeast-5:abc ap-southeast-7:abc ca-west-1:abc ' +
  'eu-central-2:abc eu-south-1:abc eu-south-2:abc il-central-1:abc me-central-1:abc me-south-1:abc mx-central-1:abc';

function parse(text: string, optIn: boolean): readonly RegionData[] {
  return text.split(' ').map((entry) => {
    const [name = '', zones = ''] = entry.split(':');
    return { name, zones, optIn };
  });
}

/** The commercial regions. https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html */
export const regionData: readonly RegionData[] = [...parse(always, false), ...parse(onRequest, true)];

/** The zone's id, which is the same in all accounts, such as `use1-az1` for `us-east-1a`. */
export function zoneId(zone: string): string {
  const [area = '', direction = '', end = ''] = zone.split('-');
  const short = direction.replace(/(north|south|east|west|central)/g, (word: string) => word.slice(0, 1));
  return `${area}${short}${end.slice(0, 1)}-az${end.charCodeAt(1) - 96}`;
}
