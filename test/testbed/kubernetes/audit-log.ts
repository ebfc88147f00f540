/** One API call, from the API server's own record. */
export interface AuditEvent {
  readonly user: string;
  readonly userAgent: string;
  /** Source addresses of the request. */
  readonly sourceIps: readonly string[];
  readonly verb: string;
  /** With its query. */
  readonly uri: string;
  readonly resource: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** Status of the reply. */
  readonly code: number | undefined;
  /** When the request arrived, ms since 1970. */
  readonly at: number;
}

interface AuditLine {
  readonly auditID: string;
  readonly user: { readonly username: string };
  readonly userAgent?: string;
  readonly sourceIPs?: readonly string[];
  readonly verb: string;
  readonly requestURI: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly namespace?: string; readonly name?: string };
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp: string;
}

/**
 * Reads an audit log. A long request has two lines, at its start and at its end, and counts once. Omits an incomplete
 * last line.
 */
export function parseAuditLog(text: string): readonly AuditEvent[] {
  const requests = new Map<string, AuditEvent>();
  for (const written of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (written === '') continue;
    const line: AuditLine = JSON.parse(written);
    if (!requests.has(line.auditID)) requests.set(line.auditID, eventOf(line));
  }
  return [...requests.values()].toSorted((a, b) => a.at - b.at);
}

function eventOf(line: AuditLine): AuditEvent {
  const { resource, subresource, namespace, name } = line.objectRef ?? {};
  return {
    user: line.user.username,
    userAgent: line.userAgent ?? '',
    sourceIps: line.sourceIPs ?? [],
    verb: line.verb,
    uri: line.requestURI,
    resource: subresource === undefined ? resource : `${resource}/${subresource}`,
    namespace,
    name,
    code: line.responseStatus?.code,
    at: Date.parse(line.requestReceivedTimestamp),
  };
}
