import type { Readable } from 'node:stream';
import type { SvcError } from '../../shared/errors.ts';
import type { SessionCommand } from './session-script.ts';

/** A machine that runs commands in sessions. This folder implements files, copies and watches with them. */
export interface SessionMachine {
  readonly name: string;
  /** Where a user finds the machine; for hints. */
  readonly host: string;
  /** Runs a request to its end. Throws when the machine could not be used; a failing command is no error. */
  session(request: SessionRequest, options: SessionOptions): Promise<SessionEnd>;
  /** The error for a broken connection. `what` continues "The connection to NAME". */
  lost(what: string): SvcError;
}

/** A request to run in a session. */
export interface SessionRequest extends Omit<SessionCommand, 'input'> {
  /** The command's input; `detached`: none, and the command continues on its own. */
  readonly input: Buffer | Readable | SizedInput | 'detached';
  readonly onStdout: (bytes: Buffer) => void;
  readonly onStderr: (bytes: Buffer) => void;
  /** Called before the first byte, and again before each repetition. */
  readonly onStart?: () => void;
  readonly timeoutMs?: number | undefined;
  /** False: this process may end before the session does. Default: true. */
  readonly holdsProcess?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A stream of known length. */
export interface SizedInput {
  readonly stream: Readable;
  readonly bytes: number;
}

/** How the machine may treat a request. */
export interface SessionOptions {
  /** Lanes do not delay each other: commands and small files, copies, and streams that run until cancelled. */
  readonly lane: SessionLane;
  /** Whether a second run has no further effect. If so, a request is repeated after a broken connection. */
  readonly isRepeatable: boolean;
}

type SessionLane = 'command' | 'copy' | 'stream';

/**
 * How a session ended. Without `exitCode` the command's end is unknown: the session was cut off (`timed-out`; `silent`
 * if the command had not started), or the connection broke (`lost`).
 */
export interface SessionEnd {
  readonly exitCode: number | undefined;
  readonly how: 'ended' | 'timed-out' | 'silent' | 'lost';
  readonly isStarted: boolean;
  /** Other output, of the carrier or a login shell. */
  readonly said: string;
}
