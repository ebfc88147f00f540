import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../../src/shared/clock.ts';
import { publicDnsName } from './ec2/addresses.ts';
import type { InstanceRecord } from './ec2/records.ts';

/** Content of an instance's metadata. */
export interface ImdsSource {
  readonly clock: Clock;
  readonly instance: InstanceRecord;
  /** Its public key, one line. */
  readonly publicKey: string | undefined;
  /** Its role, with valid credentials. */
  readonly role: () => ImdsRole | undefined;
}

/** A role as an instance sees it. */
export interface ImdsRole {
  readonly name: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  /** Ms since the epoch. */
  readonly expiresAt: number;
}

/** Answers requests to 169.254.169.254 on an instance. */
export type ImdsResponder = (request: IncomingMessage, response: ServerResponse) => void;

const longestSeconds = 21_600;
const tokenHeader = 'x-aws-ec2-metadata-token';

/** Without fractions of seconds, as the metadata has it. */
function seconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

function roleDocument(role: ImdsRole, now: number): string {
  const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token } = role;
  const Expiration = seconds(role.expiresAt);
  return JSON.stringify({ Code: 'Success', LastUpdated: seconds(now), Type: 'AWS-HMAC', AccessKeyId, SecretAccessKey, Token, Expiration });
}

/**
 * The metadata service of one instance, versions 1 (unless the instance demands tokens) and 2.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-categories.html
 */
export function createImds(source: ImdsSource): ImdsResponder {
  const { clock, instance } = source;
  const tokens = new Map<string, number>();

  function answerFor(path: string): string | undefined {
    const now = clock.now();
    const role = path.startsWith('meta-data/iam/') ? source.role() : undefined;
    const region = instance.region;
    switch (path) {
      case 'user-data':
        return instance.userData === undefined ? undefined : Buffer.from(instance.userData, 'base64').toString('utf8');
      case 'meta-data/instance-id':
        return instance.id;
      case 'meta-data/instance-type':
        return instance.type.name;
      case 'meta-data/instance-life-cycle':
        return instance.spotRequestId === undefined ? 'on-demand' : 'spot';
      case 'meta-data/ami-id':
        return instance.imageId;
      case 'meta-data/placement/availability-zone':
        return instance.zone;
      case 'meta-data/placement/region':
        return region;
      case 'meta-data/local-ipv4':
        return instance.privateIp;
      case 'meta-data/public-ipv4':
        return instance.publicIp;
      case 'meta-data/public-hostname':
        return instance.publicIp === undefined ? '' : publicDnsName(instance.publicIp, region);
      case 'meta-data/public-keys/0/openssh-key':
        return source.publicKey;
      case 'meta-data/spot/instance-action':
        return instance.interruptionAt === undefined
          ? undefined
          : JSON.stringify({ action: 'terminate', time: seconds(instance.interruptionAt) });
      case 'meta-data/spot/termination-time':
        return instance.interruptionAt === undefined ? undefined : seconds(instance.interruptionAt);
      case 'meta-data/events/recommendations/rebalance':
        return instance.rebalanceAt === undefined ? undefined : JSON.stringify({ noticeTime: seconds(instance.rebalanceAt) });
      case 'meta-data/iam/info':
        return role && JSON.stringify({ Code: 'Success', LastUpdated: seconds(now), InstanceProfileArn: instance.instanceProfileArn });
      case 'meta-data/iam/security-credentials/':
        return role?.name;
      case 'dynamic/instance-identity/document':
        return JSON.stringify({
          instanceId: instance.id,
          region,
          availabilityZone: instance.zone,
          instanceType: instance.type.name,
          imageId: instance.imageId,
        });
      default:
        return role !== undefined && path === `meta-data/iam/security-credentials/${role.name}` ? roleDocument(role, now) : undefined;
    }
  }

  function newToken(ttl: number): string {
    const token = randomBytes(32).toString('base64url');
    tokens.set(token, clock.now() + ttl * 1_000);
    return token;
  }

  function isTrusted(token: string | undefined): boolean {
    if (token === undefined) return instance.metadataOptions.HttpTokens !== 'required';
    return (tokens.get(token) ?? 0) > clock.now();
  }

  return (request, response) => {
    const path = /\/latest\/(.*)$/.exec(request.url ?? '')?.[1] ?? '';
    const send = (status: number, text: string): void => void response.writeHead(status, { 'content-type': 'text/plain' }).end(text);
    const given = (name: string): string | undefined => request.headers[name]?.toString();
    request.resume();
    if (instance.metadataOptions.HttpEndpoint === 'disabled') return send(403, '');
    if (request.method === 'PUT' && path === 'api/token') {
      const ttl = Number(given('x-aws-ec2-metadata-token-ttl-seconds'));
      // Refuses a proxied request, so that an open proxy on the machine exposes no credentials.
      if (given('x-forwarded-for') !== undefined) return send(403, '');
      return Number.isInteger(ttl) && ttl >= 1 && ttl <= longestSeconds ? send(200, newToken(ttl)) : send(400, '');
    }
    if (request.method !== 'GET') return send(405, '');
    if (!isTrusted(given(tokenHeader))) return send(401, '');
    const text = answerFor(path);
    return text === undefined ? send(404, 'Not Found') : send(200, text);
  };
}
