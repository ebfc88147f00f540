import type { Readable } from 'node:stream';
import type { SvcError } from '../../shared/errors.ts';
import type { SessionCommand } from './session-script.ts';

/**
 * A machine that runs commands in sessions, over any carrier. Commands, files, copies and watches need no more than
 * that; the other modules in this folder implement them.
 */
export interface SessionMachine {
  /** The machine's name in messages. */
  readonly name: string;
  /** Where a user finds the machine; used in hints. */
  readonly host: string;
  /** Runs one request to its end. Throws when the machine could not be used. A failing command is not an error. */
  session(request: SessionRequest, options: SessionOptions): Promise<SessionEnd>;
  /** The error for a broken connection; `what` completes the sentence "The connection to NAME". */
  lost(what: string): SvcError;
}

/** One request to run in a session. */
export interface SessionRequest extends Omit<SessionCommand, 'input'> {
  /** Bytes or a stream for the command's input; `detached` for none, when the command continues on its own. */
  readonly input: Buffer | Readable | SizedInput | 'detached';
  readonly onStdout: (bytes: Buffer) => void;
  readonly onStderr: (bytes: Buffer) => void;
  /** Called before the first byte, and again before each repetition of the request. */
  readonly onStart?: () => void;
  /** The command is ended after that many ms. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A stream of known length. */
export interface SizedInput {
  readonly stream: Readable;
  readonly bytes: number;
}

/** How the machine may treat a request. */
export interface SessionOptions {
  /**
   * The request's purpose, so that one kind does not delay another: commands and small files, copies, or streams that
   * run until cancelled.
   */
  readonly lane: SessionLane;
  /**
   * Whether running it twice has the same effect as once. If so, a broken connection is opened again and the request
   * repeated.
   */
  readonly isRepeatable: boolean;
}

/** The purpose of a session. */
type SessionLane = 'command' | 'copy' | 'stream';

/**
 * How a session ended. Without `exitCode` the command's end is unknown: the session was cut off (`timed-out`, or
 * `silent` when the command had not even started), or the connection broke (`lost`).
 */
export interface SessionEnd {
  readonly exitCode: number | undefined;
  readonly how: 'ended' | 'timed-out' | 'silent' | 'lost';
  readonly isStarted: boolean;
  /** Other output, from the carrier or from a login shell. */
  readonly said: string;
}
