/** Versions of TLS that an endpoint can require. Older ones are insecure (RFC 8996) and never accepted. */
export const tlsVersions = ['1.2', '1.3'] as const;

/** Oldest version of TLS that an endpoint accepts. */
export type TlsVersion = (typeof tlsVersions)[number];

/**
 * The cipher suites that an endpoint can use, by their names in OpenSSL: all with forward secrecy and authenticated
 * encryption. Those of TLS 1.2 are from Mozilla's "intermediate" configuration (version 5.7), without DHE, which needs
 * parameters of its own.
 */
export const tlsSuites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
] as const;

/** What an endpoint demands of handshakes. */
export interface TlsRules {
  readonly minVersion: TlsVersion;
  /** Names of `tlsSuites`, in the order of preference; at least one for each accepted version. */
  readonly ciphers: readonly string[];
}

/** The rules of an endpoint with the settings that its file has. */
export function tlsRules({ minVersion = '1.2', ciphers = tlsSuites }: Partial<TlsRules>): TlsRules {
  return { minVersion, ciphers };
}

/**
 * The suites that work with a type of key (`asymmetricKeyType` of Node's `KeyObject`). Those of TLS 1.2 name it: RSA, or
 * ECDSA for all others (RFC 8422, section 2). Those of TLS 1.3 work with each.
 */
export function suitesForKey(ciphers: readonly string[], keyType: string): readonly string[] {
  const kind = keyType.startsWith('rsa') ? '-RSA-' : '-ECDSA-';
  return ciphers.filter((suite) => versionOf(suite) === '1.3' || suite.includes(kind));
}

/** An accepted version of TLS for which a list of suites has none: no client could use it. */
export function versionWithoutSuite({ minVersion, ciphers }: TlsRules): TlsVersion | undefined {
  const versions = tlsVersions.slice(tlsVersions.indexOf(minVersion));
  return versions.find((version) => !ciphers.some((suite) => versionOf(suite) === version));
}

/** Each suite belongs to one version; OpenSSL begins the names of those of TLS 1.3 as RFC 8446 does. */
function versionOf(suite: string): TlsVersion {
  return suite.startsWith('TLS_') ? '1.3' : '1.2';
}
