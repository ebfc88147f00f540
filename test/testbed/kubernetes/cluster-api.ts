import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { waitFor } from '../../support/wait-for.ts';
import { parseAuditLog, type AuditEvent } from './audit-log.ts';
import { clusterRequest, kubeconfigText, loginOf, type ClusterLogin } from './cluster-request.ts';
import { accessReview, claimObject, fakeNode, roleObjects, volumeObjects, type FakeNode, type UserRules } from './objects.ts';

const run = promisify(execFile);

/** The fields of a pod that tests use. */
export interface PodView {
  readonly name: string;
  readonly namespace: string;
  readonly node: string | undefined;
  readonly ip: string | undefined;
  readonly phase: string;
  readonly isReady: boolean;
}

interface PodItem {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** API actions of tests in a cluster, independent of the tested code. */
export class ClusterApi {
  /** Name of the context in every kubeconfig of the cluster. */
  readonly context: string;
  /** Path of the admin's kubeconfig. */
  readonly kubeconfig: string;
  /** URL of the API server. */
  readonly server: string;
  /** Folder of its logs and its nodes. */
  readonly dir: string;
  readonly #call: (...args: readonly string[]) => Promise<string>;
  readonly #login: ClusterLogin;
  #loadBalancers = 0;

  constructor(dir: string, server: string, context: string, call: (...args: readonly string[]) => Promise<string>) {
    this.dir = dir;
    this.server = server;
    this.context = context;
    this.#call = call;
    this.#login = loginOf(dir, this.server, 'admin');
    this.kubeconfig = this.#writeKubeconfig('admin', certificateOf(this.#login));
  }

  /** Runs kubectl as the admin; returns its output. */
  async kubectl(...args: readonly string[]): Promise<string> {
    const { stdout } = await run('kubectl', args, { env: this.#kubectlEnvironment(), maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  }

  /** Creates or changes objects. */
  async apply(...objects: readonly object[]): Promise<void> {
    const child = spawn('kubectl', ['apply', '--validate=false', '-f', '-'], {
      env: this.#kubectlEnvironment(),
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
    child.stdin.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    const code = await new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    if (code !== 0) throw new Error(`kubectl apply: ${stderr}`);
  }

  /** Sends one request to the API server; PATCH sends merge patches. Throws unless it succeeds. */
  request<Reply = unknown>(method: string, path: string, body?: unknown): Promise<Reply> {
    return clusterRequest<Reply>(this.#login, method, path, body);
  }

  /** Returns all pods, or those of a namespace. */
  async pods(namespace?: string): Promise<readonly PodView[]> {
    const path = `/api/v1${namespace === undefined ? '' : `/namespaces/${namespace}`}/pods`;
    const { items } = await this.request<{ readonly items: readonly PodItem[] }>('GET', path);
    return items.map(({ metadata, spec, status }) => ({
      name: metadata.name,
      namespace: metadata.namespace,
      node: spec.nodeName,
      ip: status.podIP,
      phase: status.phase,
      isReady: status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false,
    }));
  }

  /** The name of a node in the API. Nodes count from 1. */
  nodeName(node: number): string {
    return `node${node}`;
  }

  /** Whether a node's Ready condition is True. */
  async isNodeReady(node: number): Promise<boolean> {
    const { status } = await this.request<Pick<PodItem, 'status'>>('GET', `/api/v1/nodes/${this.nodeName(node)}`);
    return status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;
  }

  /** Makes a node advertise GPUs; containers with them get no device. Must be repeated after the node was killed. */
  async fakeGpus(
    node: number,
    { count, labels = {} }: { readonly count: number; readonly labels?: Readonly<Record<string, string>> },
  ): Promise<void> {
    const path = `/api/v1/nodes/${this.nodeName(node)}`;
    await this.request('PATCH', path, { metadata: { labels } });
    await this.request('PATCH', `${path}/status`, { status: { capacity: { 'nvidia.com/gpu': String(count) } } });
    await waitFor(`GPUs of ${this.nodeName(node)}`, async () => {
      const { status } = await this.request<{ readonly status: { readonly allocatable?: Readonly<Record<string, string>> } }>('GET', path);
      return status.allocatable?.['nvidia.com/gpu'] === String(count);
    });
  }

  /** Adds a node that is only an object of the API: the scheduler assigns pods to it, but they never run. */
  async addFakeNode(name: string, options: FakeNode = {}): Promise<void> {
    const { object, status, taints } = fakeNode(name, options);
    await this.request('POST', '/api/v1/nodes', object);
    await this.request('PATCH', `/api/v1/nodes/${name}/status`, { status });
    // The API server gives new nodes a taint until they are ready.
    await waitFor(`${name} to take pods`, async () => {
      const { spec } = await this.request<{ readonly spec: { readonly taints?: readonly unknown[] } }>('PATCH', `/api/v1/nodes/${name}`, {
        spec: { taints },
      });
      return (spec.taints?.length ?? 0) === taints.length;
    });
  }

  /**
   * Adds a disk for claims of the default storage class: a folder of this computer, shared by all nodes, so it outlives
   * each of them.
   */
  async addVolume(name: string, { gb = 10 }: { readonly gb?: number } = {}): Promise<string> {
    const folder = `${this.dir}/volumes/${name}`;
    mkdirSync(folder, { recursive: true, mode: 0o777 });
    await run('chmod', ['0777', folder]);
    await this.apply(...volumeObjects(name, folder, gb));
    return folder;
  }

  /** Creates a claim for such a disk. */
  async claimVolume(name: string, namespace = 'default', gb = 1): Promise<void> {
    await this.apply(claimObject(name, namespace, gb));
  }

  /** Gives a Service of type LoadBalancer an address that works on this computer, as a cloud would. */
  async assignLoadBalancer(namespace: string, service: string): Promise<string> {
    this.#loadBalancers += 1;
    const ip = `10.${basename(this.dir)}.192.${this.#loadBalancers}`;
    await this.request('PATCH', `/api/v1/namespaces/${namespace}/services/${service}/status`, {
      status: { loadBalancer: { ingress: [{ ip }] } },
    });
    return ip;
  }

  /**
   * Returns the kubeconfig of a user with exactly these rules: those of a Role in a namespace, which becomes the
   * context's namespace and is created if needed, and those of a ClusterRole.
   */
  async addUser(name: string, rules: UserRules): Promise<string> {
    const { namespace = 'default' } = rules;
    await this.apply(...roleObjects(name, rules, { kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' }));
    await this.#call('certificate', name, 'svc-test');
    await this.#untilInForce(name, rules);
    return this.#writeKubeconfig(name, certificateOf(loginOf(this.dir, this.server, name)), namespace);
  }

  /** As `addUser`, for a service account with its token. */
  async addServiceAccount(name: string, rules: UserRules): Promise<string> {
    const { namespace = 'default' } = rules;
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
    await this.apply(...roleObjects(name, rules, { kind: 'ServiceAccount', name, namespace }), account);
    const token = await waitFor(`the token of ${name}`, () => this.#tokenOf(namespace, name));
    await this.#untilInForce(`system:serviceaccount:${namespace}:${name}`, rules);
    return this.#writeKubeconfig(name, { token }, namespace);
  }

  /** Returns the API calls in order. Needs `audit`; excludes calls of the cluster's own components. */
  auditLog(): readonly AuditEvent[] {
    const file = `${this.dir}/log/audit`;
    return existsSync(file) ? parseAuditLog(readFileSync(file, 'utf8')) : [];
  }

  /** The API server applies new roles after a delay, and refuses requests until then. */
  async #untilInForce(user: string, { namespace = 'default', rules = [], clusterRules = [] }: UserRules): Promise<void> {
    const reviews = [...rules.map((rule) => accessReview(user, rule, namespace)), ...clusterRules.map((rule) => accessReview(user, rule))];
    for (const review of reviews) {
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const isAllowed = async (): Promise<boolean> =>
        (await this.request<{ readonly status: { readonly allowed: boolean } }>('POST', path, review)).status.allowed;
      await waitFor(`the role of ${user}`, isAllowed);
    }
  }

  async #tokenOf(namespace: string, account: string): Promise<string | undefined> {
    const path = `/api/v1/namespaces/${namespace}`;
    const { secrets } = await this.request<{ readonly secrets?: readonly { readonly name: string }[] }>(
      'GET',
      `${path}/serviceaccounts/${account}`,
    );
    const name = secrets?.[0]?.name;
    if (name === undefined) return undefined;
    const { data } = await this.request<{ readonly data?: { readonly token?: string } }>('GET', `${path}/secrets/${name}`);
    return data?.token === undefined ? undefined : Buffer.from(data.token, 'base64').toString();
  }

  #writeKubeconfig(user: string, credentials: object, namespace?: string): string {
    const file = `${this.dir}/${this.context}-${user}.kubeconfig`;
    writeFileSync(file, kubeconfigText(this.context, this.#login, user, credentials, namespace), { mode: 0o600 });
    return file;
  }

  #kubectlEnvironment(): NodeJS.ProcessEnv {
    return { PATH: process.env['PATH'], HOME: this.dir, KUBECONFIG: this.kubeconfig };
  }
}

function certificateOf(login: ClusterLogin): object {
  return { 'client-certificate-data': login.certificate.toString('base64'), 'client-key-data': login.key.toString('base64') };
}
