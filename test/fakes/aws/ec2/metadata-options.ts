import type { InstanceMetadataOptionsRequest, InstanceMetadataOptionsResponse } from '@aws-sdk/client-ec2';

/** Metadata options of an instance, with AWS's defaults. */
export function metadataOptions(requested: InstanceMetadataOptionsRequest | undefined): InstanceMetadataOptionsResponse {
  return {
    State: 'applied',
    HttpTokens: requested?.HttpTokens ?? 'optional',
    HttpPutResponseHopLimit: requested?.HttpPutResponseHopLimit ?? 1,
    HttpEndpoint: requested?.HttpEndpoint ?? 'enabled',
    HttpProtocolIpv6: requested?.HttpProtocolIpv6 ?? 'disabled',
    InstanceMetadataTags: requested?.InstanceMetadataTags ?? 'disabled',
  };
}
