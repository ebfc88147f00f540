import type { IncomingHttpHeaders } from 'node:http2';
import { Http2Call, type Http2TestClient } from './http2.ts';

/** One gRPC message over HTTP/2: uncompressed flag, length, bytes. */
export function grpcMessage(text: string): Buffer {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

/** Returns the whole messages at the start of some bytes. */
export function readGrpcMessages(bytes: Buffer): readonly string[] {
  const messages: string[] = [];
  let at = 0;
  while (at + 5 <= bytes.length) {
    const length = bytes.readUInt32BE(at + 1);
    if (at + 5 + length > bytes.length) break;
    messages.push(bytes.toString('utf8', at + 5, at + 5 + length));
    at += 5 + length;
  }
  return messages;
}

/** The headers of every gRPC request. */
const grpcRequestHeaders = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' } as const;

/** A gRPC call: any number of messages in both directions at any time. */
export class GrpcCall {
  readonly call: Http2Call;

  constructor(client: Http2TestClient, path: string, headers: Readonly<Record<string, string>> = {}) {
    this.call = new Http2Call(
      client.session,
      { ...grpcRequestHeaders, ':path': path, ...headers },
      { endStream: false, waitForTrailers: true },
    );
  }

  send(text: string): this {
    this.call.stream.write(grpcMessage(text));
    return this;
  }

  /** Ends the client's messages. */
  finish(): this {
    this.call.stream.end();
    return this;
  }

  get messages(): readonly string[] {
    return readGrpcMessages(Buffer.from(this.call.text, 'latin1'));
  }

  /** The status and the message of the call, from the trailers, or from the head without trailers. */
  async result(): Promise<{
    readonly status: string | undefined;
    readonly message: string | undefined;
    readonly headers: IncomingHttpHeaders;
  }> {
    const { headers, trailers } = await this.call.done;
    const statusHeaders = trailers['grpc-status'] === undefined ? headers : trailers;
    return { status: textOf(statusHeaders['grpc-status']), message: textOf(statusHeaders['grpc-message']), headers };
  }
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join() : value;
}
