/** Kinds of isolation between machines on one computer, best first. */
export const isolationKinds = ['root', 'userns', 'bwrap', 'none'] as const;
export type IsolationKind = (typeof isolationKinds)[number];

/** An isolated machine's outbound network, best first. `host`: the host's network. `none`: no outbound network. */
export type OutboundKind = 'slirp4netns' | 'pasta' | 'proxy' | 'host' | 'none';

/** Names for messages. */
export const isolationNames: Readonly<Record<IsolationKind, string>> = {
  root: 'network, process and mount namespaces (as root)',
  userns: 'user, network, process and mount namespaces (no root needed)',
  bwrap: 'bubblewrap',
  none: 'none: each machine has a port of its own in $SVC_REPLICA_PORT',
};

/** Names for messages. */
export const outboundNames: Readonly<Record<OutboundKind, string>> = {
  slirp4netns: 'slirp4netns',
  pasta: 'pasta',
  proxy: 'built-in proxy: programs that follow http_proxy and https_proxy reach the internet, others do not',
  host: 'direct',
  none: 'none: this computer has no route out',
};
