import { createHmac } from 'node:crypto';
import { edgeProxyPort } from '../../domain/edge-proxy/edge-proxy.ts';
import type { RemoteControllerInfo } from '../../domain/remote-controller-info.ts';
import type { KubeDraft } from '../../kubernetes/kube-api.ts';
import type { HighAvailabilityDesign, HighAvailabilitySecrets } from './design.ts';
import { anchorData, haNames, inContainer } from './names.ts';
import { metadataOf } from './object-parts.ts';

/** The object that owns all others, with the controller's facts about its surroundings. No secrets. */
export function anchorObject(design: HighAvailabilityDesign): KubeDraft {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadataOf(design, haNames.anchor),
    data: {
      [anchorData.key]: design.key,
      [anchorData.host]: `${JSON.stringify(hostOf(design), undefined, 2)}\n`,
      [anchorData.kubeconfig]: ownKubeconfig(design),
    },
  };
}

function hostOf({ key, context, namespace, publicHost, hourlyUsd }: HighAvailabilityDesign): RemoteControllerInfo {
  return {
    key,
    publicHost,
    addresses: [],
    machine: { provider: 'kubernetes', region: context, zone: null, instanceType: 'pods', hourlyUsd },
    whenIdle: 'exit',
    balancers: { tokenFile: inContainer.token, port: edgeProxyPort, namespace },
  };
}

/** The Secrets. A key cannot be a path, so files are numbered, and `list` maps each key to its path. */
export function secretObjects(design: HighAvailabilityDesign, secrets: HighAvailabilitySecrets): readonly KubeDraft[] {
  const secret = (name: string, data: Readonly<Record<string, string>>): KubeDraft => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadataOf(design, name),
    type: 'Opaque',
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')])),
  });
  return [
    secret(haNames.token, { [tokenKey]: secrets.token }),
    secret(haNames.environment, secrets.environment),
    secret(haNames.files, numberedFiles(secrets.files)),
  ];
}

/** Key of the token in its Secret. */
export const tokenKey = 'token';

/** `list`: per file a line with its key and its path below the home. */
function numberedFiles(files: HighAvailabilitySecrets['files']): Readonly<Record<string, string>> {
  const named = files
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))
    .map(({ path, content, once }, index) => ({ key: `${once === true ? 'once' : 'file'}-${index}`, path, content }));
  return {
    list: named.map(({ key, path }) => `${key} ${path}\n`).join(''),
    ...Object.fromEntries(named.map(({ key, content }) => [key, content])),
  };
}

/** Changes when the controller must restart for new settings. With the token as key, it does not reveal them. */
export function settingsDigest(design: HighAvailabilityDesign, { files, environment, token }: HighAvailabilitySecrets): string {
  return createHmac('sha256', token)
    .update(
      JSON.stringify([
        hostOf(design),
        numberedFiles(files),
        Object.entries(environment).toSorted(([one], [other]) => (one < other ? -1 : 1)),
      ]),
    )
    .digest('hex')
    .slice(0, 16);
}

/** For the controller's own Kubernetes cluster: its service account, under the user's name of the context. */
function ownKubeconfig({ context, namespace }: HighAvailabilityDesign): string {
  const account = '/var/run/secrets/kubernetes.io/serviceaccount';
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: ownName, cluster: { server: apiServerPlaceholder, 'certificate-authority': `${account}/ca.crt` } }],
    users: [{ name: ownName, user: { tokenFile: `${account}/token` } }],
    contexts: [{ name: context, context: { cluster: ownName, user: ownName, namespace } }],
    'current-context': context,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** No user's kubeconfig may have this name: its entry would be confused with svc's. */
const ownName = 'svc-own-cluster';

/** Only a pod knows the API server's address that works without DNS. */
const apiServerPlaceholder = 'https://API-SERVER';

/** Puts the files into the home, with mode 0600, before the controller starts. An earlier pod's sockets are useless. */
export const putFilesScript = `set -eu
umask 077
home=${inContainer.home}
mkdir -p "$home"
chmod 700 "$home"
rm -rf "$home/run"
put() {
  mkdir -p "$(dirname -- "$2")"
  cat -- "$1" >"$2.new"
  mv -f -- "$2.new" "$2"
}
if [ -e ${inContainer.files}/list ]; then
  while read -r key path; do
    case $key in once-*) if [ -e "$home/$path" ]; then continue; fi ;; esac
    put "${inContainer.files}/$key" "$home/$path"
  done <${inContainer.files}/list
fi
put ${inContainer.anchor}/${anchorData.host} "$home/host.json"
case $KUBERNETES_SERVICE_HOST in *:*) host="[$KUBERNETES_SERVICE_HOST]" ;; *) host=$KUBERNETES_SERVICE_HOST ;; esac
put ${inContainer.anchor}/${anchorData.kubeconfig} ${inContainer.ownKubeconfig}
sed -i "s|${apiServerPlaceholder}|https://$host:$KUBERNETES_SERVICE_PORT|" ${inContainer.ownKubeconfig}
`;
