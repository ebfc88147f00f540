import { readFileSync } from 'node:fs';
import { request } from 'node:https';

/** Credentials and URL of an API server. */
export interface ClusterLogin {
  readonly server: string;
  readonly ca: Buffer;
  readonly certificate: Buffer;
  readonly key: Buffer;
}

/** Reads the login of a user whose certificate the testbed created. */
export function loginOf(dir: string, server: string, user: string): ClusterLogin {
  const file = (name: string): Buffer => readFileSync(`${dir}/pki/${name}`);
  return { server, ca: file('ca.crt'), certificate: file(`${user}.crt`), key: file(`${user}.key`) };
}

/** Sends one request to the API server, independent of the tested code. Throws unless it succeeds. */
export function clusterRequest<Reply>(login: ClusterLogin, method: string, path: string, body?: unknown): Promise<Reply> {
  const { server, ca, certificate: cert, key } = login;
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return new Promise((resolve, reject) => {
    const sent = request(`${server}${path}`, { method, ca, cert, key, agent: false, headers: { 'content-type': type } }, (reply) => {
      let text = '';
      reply.setEncoding('utf8');
      reply.on('data', (chunk: string) => (text += chunk));
      reply.on('error', reject);
      reply.on('end', () => {
        const status = reply.statusCode ?? 0;
        if (status >= 200 && status < 300) resolve(JSON.parse(text));
        else reject(new Error(`${method} ${path}: ${status} ${text}`));
      });
    });
    sent.setTimeout(300_000, () => sent.destroy(new Error(`${method} ${path}: no answer`)));
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** A kubeconfig file with embedded credentials. JSON is YAML. */
export function kubeconfigText(
  context: string,
  login: Pick<ClusterLogin, 'server' | 'ca'>,
  user: string,
  credentials: object,
  namespace?: string,
): string {
  const cluster = { server: login.server, 'certificate-authority-data': login.ca.toString('base64') };
  const userName = `${context}-${user}`;
  return `${JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: context, cluster }],
      users: [{ name: userName, user: credentials }],
      contexts: [{ name: context, context: { cluster: context, user: userName, ...(namespace === undefined ? {} : { namespace }) } }],
      'current-context': context,
    },
    null,
    2,
  )}\n`;
}
