import { messageOf, SvcError } from '../shared/errors.ts';
import { isObject, parseJson } from '../shared/json.ts';

/** An error answer of an API server. */
export interface KubeStatus {
  /** HTTP status. */
  readonly code: number;
  /** Such as `Forbidden` or `AlreadyExists`; empty: the answer is no Kubernetes `Status`. */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly { readonly reason: string; readonly field: string; readonly message: string }[];
}

/** The attempted request, for messages. */
export interface KubeAct {
  readonly verb: string;
  readonly path: string;
  readonly context: string;
}

class StatusAnswer extends Error {
  override readonly name = 'StatusAnswer';
  readonly status: KubeStatus;

  constructor(status: KubeStatus) {
    super(status.message);
    this.status = status;
  }
}

/** The API server's answer behind an error; undefined when it sent none. */
export function kubeStatusOf(error: unknown): KubeStatus | undefined {
  return error instanceof Error && error.cause instanceof StatusAnswer ? error.cause.status : undefined;
}

/** Rejected against the object's schema: a retry fails too, although most versions report a server error (500). */
export function isAgainstSchema({ message }: KubeStatus): boolean {
  return message.includes('failed to create typed patch object');
}

/** An answer of any format: proxies answer in HTML. */
export function readStatus(code: number, body: string): KubeStatus {
  const said = parseJson(body);
  if (isObject(said) && said['kind'] === 'Status') return statusOfObject(said, code);
  const text = body
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, longestQuote);
  return { code, reason: '', message: text === '' ? `HTTP ${code}` : `HTTP ${code}: ${text}`, causes: [] };
}

const longestQuote = 300;
const longestMessage = 4000;

/** A `Status` object from a body, a watch or a channel. */
export function statusOfObject(said: Readonly<Record<string, unknown>>, code: number): KubeStatus {
  const details = said['details'];
  const causes = isObject(details) && Array.isArray(details['causes']) ? details['causes'].filter((cause) => isObject(cause)) : [];
  return {
    code: typeof said['code'] === 'number' ? said['code'] : code,
    reason: textOf(said['reason']),
    message: textOf(said['message']).slice(0, longestMessage) || `HTTP ${code}`,
    causes: causes.map((cause) => ({ reason: textOf(cause['reason']), field: textOf(cause['field']), message: textOf(cause['message']) })),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The error for an answer with an error status. */
export function statusError(act: KubeAct, status: KubeStatus): SvcError {
  const what = actText(act);
  const cause = new StatusAnswer(status);
  if (status.code === 401) {
    return new SvcError('SVC_CREDENTIALS', `The cluster ${act.context} does not accept the user's login (to ${what}): ${status.message}`, {
      hint: 'Log in to the cluster again, or correct the user of this context in the kubeconfig; then: svc check kubernetes',
      cause,
    });
  }
  if (status.code === 403) return new SvcError('SVC_DENIED', `The cluster ${act.context} refuses to ${what}: ${status.message}`, { cause });
  return new SvcError('SVC_KUBERNETES', `The cluster ${act.context} did not ${what}: ${status.message}`, { cause });
}

/** Node's codes for untrusted certificates: OpenSSL's verification, and names in a certificate. */
const distrust = /^(ERR_TLS_CERT_|CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_)/;

/** Whether the certificate failed verification: the server is not the kubeconfig's, and a retry fails too. */
export function isDistrusted(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string' && distrust.test(error.code)) return true;
  return error.cause !== undefined && isDistrusted(error.cause);
}

/** The error of a request without an answer. */
export function unansweredError(act: KubeAct, why: unknown): SvcError {
  if (isDistrusted(why)) {
    return new SvcError('SVC_CREDENTIALS', `The API server of ${act.context} shows a certificate that is not trusted: ${messageOf(why)}`, {
      hint: 'Correct certificate-authority-data or tls-server-name of the cluster in the kubeconfig.',
      cause: why,
    });
  }
  return new SvcError('SVC_KUBERNETES', `The API server of ${act.context} does not answer (to ${actText(act)}): ${messageOf(why)}`, {
    cause: why,
  });
}

/** `list pods in namespace default`, from an API path. */
export function actText({ verb, path }: KubeAct): string {
  const segments = (path.split('?')[0] ?? '')
    .split('/')
    .filter((segment) => segment !== '')
    .map(decoded);
  const rest = segments[0] === 'api' ? segments.slice(2) : segments[0] === 'apis' ? segments.slice(3) : segments.slice(0, 0);
  if (rest.length === 0) return `${verb} ${path.split('?')[0] ?? path}`;
  const [first, namespace, ...others] = rest;
  if (first === 'namespaces' && namespace !== undefined && others.length > 0) {
    return `${verb} ${resourceText(others)} in namespace ${namespace}`;
  }
  return `${verb} ${resourceText(rest)}`;
}

function resourceText([resource, name, subresource]: readonly string[]): string {
  const whole = subresource === undefined ? resource : `${resource}/${subresource}`;
  return name === undefined ? `${whole}` : `${whole} ${name}`;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
