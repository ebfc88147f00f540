import type { Svc } from './e2e.ts';

/** Options of a test's service. */
export interface WebService {
  /** A fixed number, or the lines of another policy. */
  readonly replicas: number | readonly string[];
  /** Lines below `resources`, beside the port. */
  readonly resources: readonly string[];
  /** Further lines below `service`. */
  readonly service: readonly string[];
  /** Response time, ms. */
  readonly answerMs: number;
}

function serverText(answerMs: number): string {
  return `
import http.server, os, time
page = open('page.txt').read()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    # Head and body go out together: a reply that has begun can be finished by nobody else.
    wbufsize = 65536
    def do_GET(self):
        time.sleep(${answerMs / 1_000})
        body = (page + os.environ['SVC_REPLICA_ID']).encode()
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *args): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(('', int(os.environ.get('SVC_REPLICA_PORT', '8080'))), Handler).serve_forever()
`;
}

/**
 * Writes a service whose replicas answer with `replica ID`, from a file of its working directory; returns the path of
 * its file.
 */
export function writeWebService(svc: Svc, { replicas, resources, service, answerMs }: WebService): string {
  svc.file('web/server.py', serverText(answerMs));
  svc.file('web/page.txt', 'replica ');
  const probe = service.some((line) => line.includes('readiness_probe')) ? [] : ['  readiness_probe: /'];
  const lines = [
    'service:',
    ...probe,
    ...(typeof replicas === 'number' ? [`  replicas: ${replicas}`] : replicas),
    ...service,
    'resources:',
    '  ports: 8080',
    ...resources,
  ];
  return svc.file('web/service.yaml', [...lines, 'workdir: .', 'run: exec python3 server.py', ''].join('\n'));
}
