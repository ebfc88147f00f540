import type { Readable } from 'node:stream';
import type { SvcError } from '../../shared/errors.ts';
import type { SessionCommand } from './session-script.ts';

/**
 * A machine on which commands can be run in sessions, whatever carries them. Commands, files, copies and watches need no more than that; see the
 * other modules here.
 */
export interface SessionMachine {
  /** What it is called in messages. */
  readonly name: string;
  /** Where somebody would look for it: in hints. */
  readonly host: string;
  /** Runs one request to its end. Throws when the machine could not be worked on; a command that fails is none of its errors. */
  session(request: SessionRequest, options: SessionOptions): Promise<SessionEnd>;
  /** The error for a connection that broke; `what` ends the sentence "The connection to NAME". */
  lost(what: string): SvcError;
}

/** What is to happen in one session. */
export interface SessionRequest extends Omit<SessionCommand, 'input'> {
  /** Bytes for the command's input, a stream of them, or nothing as it is to go on by itself. */
  readonly input: Buffer | Readable | SizedInput | 'detached';
  readonly onStdout: (bytes: Buffer) => void;
  readonly onStderr: (bytes: Buffer) => void;
  /** Before the first byte, each time when the request has to be repeated. */
  readonly onStart?: () => void;
  /** The command is ended after so many ms. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A stream whose length is known. */
export interface SizedInput {
  readonly stream: Readable;
  readonly bytes: number;
}

/** How a request may be treated. */
export interface SessionOptions {
  /** What it is for, so that none holds up another: commands and small files, copies, or what goes on until it is cancelled. */
  readonly lane: SessionLane;
  /** Whether doing it twice is the same as once: then a connection that broke is made anew and the request repeated. */
  readonly isRepeatable: boolean;
}

/** What a session is for. */
export type SessionLane = 'command' | 'copy' | 'stream';

/**
 * How a session ended. Without `exitCode` the command's end was not heard of: it was cut off (`timed-out`, `silent` when it had not even begun) or
 * the connection went (`lost`).
 */
export interface SessionEnd {
  readonly exitCode: number | undefined;
  readonly how: 'ended' | 'timed-out' | 'silent' | 'lost';
  readonly isStarted: boolean;
  /** What was said besides, by what carries the session or by a login shell. */
  readonly said: string;
}
