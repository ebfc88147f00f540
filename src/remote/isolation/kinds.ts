/** Ways to keep machines on one computer apart that this version can use, best first. */
export const isolationKinds = ['root', 'userns', 'bwrap', 'none'] as const;
export type IsolationKind = (typeof isolationKinds)[number];

/** Ways out of a machine that has a network of its own, best first. `host`: it has none of its own; `none`: there is no way. */
export type OutboundKind = 'slirp4netns' | 'pasta' | 'proxy' | 'host' | 'none';

/** What a kind of isolation is, for people. */
export const isolationNames: Readonly<Record<IsolationKind, string>> = {
  root: 'network, process and mount namespaces (as root)',
  userns: 'user, network, process and mount namespaces (no root needed)',
  bwrap: 'bubblewrap',
  none: 'none: each machine has a port of its own in $SVC_REPLICA_PORT',
};

/** What a way out is, for people. */
export const outboundNames: Readonly<Record<OutboundKind, string>> = {
  slirp4netns: 'slirp4netns',
  pasta: 'pasta',
  proxy: 'built-in proxy: programs that follow http_proxy and https_proxy reach the internet, others do not',
  host: 'direct',
  none: 'none: this computer has no route out',
};
