import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { BalancerResponse } from '../http1/balancer-response.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { httpsRequired, refusal, unknownHost } from '../exchange/balancer-responses.ts';
import type { TlsMaterial } from './tls-files.ts';

const httpsPort = 443;

/** Answers requests of plain HTTP with the same URL at the endpoint. */
export class HttpsRedirect {
  /** Of the endpoint; 0 until it is known. */
  port = 0;
  #certificate: X509Certificate;

  constructor(material: TlsMaterial) {
    this.#certificate = new X509Certificate(material.cert);
  }

  renew(material: TlsMaterial): void {
    this.#certificate = new X509Certificate(material.cert);
  }

  /** Leads only to hosts of the certificate: any other host comes from an attacker, or fails the handshake. */
  responseTo({ host, path }: RequestHead): BalancerResponse {
    if (host === undefined) return refusal('bad_host');
    // The head's rules ensure that a colon after the host, or after the bracket of IPv6, begins a port.
    const name = host.replace(/:\d*$/, '');
    const address = name.replace(/^\[(.*)\]$/, '$1');
    const isOwn = (isIP(address) === 0 ? this.#certificate.checkHost(name) : this.#certificate.checkIP(address)) !== undefined;
    if (!isOwn) return unknownHost;
    const port = this.port === httpsPort ? '' : `:${this.port}`;
    return httpsRequired(`https://${name}${port}${path === '*' ? '/' : path}`);
  }
}
