/**
 * The part of Node's internal stream handles that `HandleTransport` needs;
 * docs/decisions/0012-sockets-without-streams.md gives the reasons, with figures. Unchanged in shape for many major
 * versions. The project uses one exact version of Node, and a process test covers each member.
 */
export interface StreamHandle {
  readonly fd: number;
  /** Called with `this` as the handle. `streamBaseState` has the number of bytes, or a negative error. */
  onread: (() => void) | undefined;
  useUserBuffer(buffer: Uint8Array): void;
  readStart(): number;
  readStop(): number;
  /** Zero, or a negative error. When `wasAsync()` is then true, `oncomplete` follows; else the request is reusable. */
  writeLatin1String(request: WriteRequest, text: string): number;
  writev(request: WriteRequest, parts: readonly Uint8Array[], areBuffers: true): number;
  shutdown(request: CompletionRequest): number;
  close(done: () => void): void;
  /** TCP only. */
  reset?(done: () => void): number;
}

/** An operation that may complete later. */
interface CompletionRequest {
  oncomplete: ((status: number) => void) | undefined;
}

/** A write. */
export interface WriteRequest extends CompletionRequest {
  /** Keeps the bytes alive. */
  buffer: readonly Uint8Array[] | undefined;
}

interface StreamBinding {
  readonly WriteWrap: new () => WriteRequest;
  readonly ShutdownWrap: new () => CompletionRequest;
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kLastWriteWasAsync: number;
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-deprecated -- the types do not describe internals
const binding = (process as unknown as { binding(name: string): unknown }).binding('stream_wrap') as StreamBinding;
const { streamBaseState, kReadBytesOrError, kLastWriteWasAsync } = binding;

/** A request for one write at a time. */
export function newWriteRequest(): WriteRequest {
  return new binding.WriteWrap();
}

/** A request to shut down the sending side. */
export function newShutdownRequest(): CompletionRequest {
  return new binding.ShutdownWrap();
}

/** The result of the read being reported: bytes, or a negative error (`endOfFile` for the orderly end). */
export function bytesReadOrError(): number {
  return streamBaseState[kReadBytesOrError] ?? 0;
}

/** Whether the last write continues in the background. */
export function wasAsync(): boolean {
  return streamBaseState[kLastWriteWasAsync] !== 0;
}

/** libuv's UV_EOF. */
export const endOfFile = -4095;

/** Takes the handle out of a socket, which is unusable afterwards. Undefined when the socket has none. */
export function takeHandle(socket: object): StreamHandle | undefined {
  const key = '_handle';
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
  const holder = socket as { [key]: StreamHandle | null };
  const handle = holder[key] ?? undefined;
  holder[key] = null;
  return handle;
}
