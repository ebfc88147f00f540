import type { InstanceMetadataOptionsRequest, InstanceMetadataOptionsResponse } from '@aws-sdk/client-ec2';

/** How the instance answers about itself, with AWS's defaults for what is not said. */
export function metadataOptions(wanted: InstanceMetadataOptionsRequest | undefined): InstanceMetadataOptionsResponse {
  return {
    State: 'applied',
    HttpTokens: wanted?.HttpTokens ?? 'optional',
    HttpPutResponseHopLimit: wanted?.HttpPutResponseHopLimit ?? 1,
    HttpEndpoint: wanted?.HttpEndpoint ?? 'enabled',
    HttpProtocolIpv6: wanted?.HttpProtocolIpv6 ?? 'disabled',
    InstanceMetadataTags: wanted?.InstanceMetadataTags ?? 'disabled',
  };
}
