import {
  connect,
  createServer,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type SecureClientSessionOptions,
  type ServerOptions,
} from 'node:http2';
import { watchConnections, type FakeReplica } from './raw-http.ts';

/** A response over HTTP/2, and how its stream ended. */
export interface Http2Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value; as received. */
  readonly raw: readonly string[];
  readonly interims: readonly IncomingHttpHeaders[];
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The error code of the stream's end; 0 for the proper end. */
  readonly code: number;
}

/** One open stream; `done` resolves when it is closed for any reason. */
export class Http2Call {
  readonly stream: ClientHttp2Stream;
  readonly done: Promise<Http2Response>;
  status = 0;
  text = '';

  constructor(
    session: ClientHttp2Session,
    headers: OutgoingHttpHeaders,
    options: { readonly endStream: boolean; readonly waitForTrailers?: boolean },
  ) {
    this.stream = session.request(headers, options);
    const interims: IncomingHttpHeaders[] = [];
    const chunks: Buffer[] = [];
    let final: IncomingHttpHeaders = {};
    let raw: readonly string[] = [];
    let trailers: IncomingHttpHeaders = {};
    this.stream.on('headers', (fields) => interims.push(fields));
    this.stream.on('response', (fields, _flags, list) => {
      final = fields;
      raw = list;
      this.status = Number(fields[':status']);
    });
    this.stream.on('trailers', (fields) => {
      trailers = fields;
    });
    this.stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      this.text += chunk.toString('latin1');
    });
    this.stream.on('error', () => undefined);
    this.done = new Promise((resolve) => {
      this.stream.on('close', () => {
        const body = Buffer.concat(chunks);
        resolve({ status: this.status, headers: final, raw, interims, trailers, body, code: this.stream.rstCode ?? 0 });
      });
    });
  }
}

/** A client's HTTP/2 connection; it collects errors. */
export class Http2TestClient {
  readonly session: ClientHttp2Session;
  readonly errors: string[] = [];
  /** The codes of the received GOAWAY frames. */
  readonly goaways: number[] = [];
  isClosed = false;

  constructor(url: string, options: SecureClientSessionOptions = {}) {
    this.session = connect(url, { strictSingleValueFields: false, ...options } as SecureClientSessionOptions);
    this.session.on('error', (error: Error) => this.errors.push('code' in error ? String(error.code) : error.message));
    this.session.on('goaway', (code: number) => this.goaways.push(code));
    this.session.on('close', () => {
      this.isClosed = true;
    });
  }

  /** Begins a request whose body the caller writes. */
  call(headers: OutgoingHttpHeaders, waitForTrailers = false): Http2Call {
    return new Http2Call(this.session, headers, { endStream: false, waitForTrailers });
  }

  /** Sends a whole request; returns its response. */
  get(path: string, headers: OutgoingHttpHeaders = {}): Promise<Http2Response> {
    return new Http2Call(this.session, { ':path': path, ...headers }, { endStream: true }).done;
  }

  /** The same with a body. */
  post(path: string, body: string | Buffer, headers: OutgoingHttpHeaders = {}): Promise<Http2Response> {
    const call = this.call({ ':path': path, ':method': 'POST', ...headers });
    call.stream.end(body);
    return call.done;
  }

  close(): void {
    this.session.destroy();
  }
}

/** Runs `use` with a client, and always closes it afterwards. */
export async function withHttp2<Result>(
  url: string,
  use: (client: Http2TestClient) => Promise<Result>,
  options: SecureClientSessionOptions = { rejectUnauthorized: false },
): Promise<Result> {
  const client = new Http2TestClient(url, options);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

/** A replica that speaks HTTP/2 without TLS. */
export interface Http2Replica extends FakeReplica {
  readonly sessions: ReadonlySet<ServerHttp2Session>;
}

/** Handler of one stream of a replica. */
export type OnHttp2Stream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: readonly string[]) => void;

/** Starts a replica on `node:http2`. */
export async function http2Replica(onStream: OnHttp2Stream, options: ServerOptions = {}): Promise<Http2Replica> {
  const server = createServer(options);
  const sessions = new Set<ServerHttp2Session>();
  const { connections, accepted } = watchConnections(server);
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers, _flags, raw) => {
    stream.on('error', () => undefined);
    onStream(stream, headers, raw);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve());
  });
  const address = server.address();
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    for (const socket of connections) socket.destroy();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  };
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    connections,
    accepted,
    sessions,
    close,
  };
}
