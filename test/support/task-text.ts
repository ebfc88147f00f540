import type { ErrorCode } from '../../src/shared/error-codes.ts';
import { SvcError, type Problem } from '../../src/shared/errors.ts';
import type { Task } from '../../src/domain/task.ts';
import { parseTask } from '../../src/spec/parse-task.ts';
import type { TaskSource } from '../../src/spec/task-document.ts';

/** A task file in /project, with the home folder /home/me. */
export function sourceOf(source: string, added: Partial<TaskSource> = {}): TaskSource {
  return { source, file: '/project/service.yaml', envs: {}, secrets: {}, home: '/home/me', ...added };
}

/** Parses such a file as a task. A service without `run` gets a program, so that a test can omit it. */
export function parseText(source: string, added: Partial<TaskSource> = {}): Task {
  const program = /^service:/m.test(source) && !/^run:/m.test(source) ? `${source.endsWith('\n') ? '' : '\n'}run: serve\n` : '';
  return parseTask(sourceOf(source + program, added));
}

/** Returns the problems of a text as an error; fails when it is valid. */
export function refusalOf(source: string, added: Partial<TaskSource> = {}): SvcError {
  try {
    parseText(source, added);
  } catch (error: unknown) {
    if (error instanceof SvcError) return error;
    throw error;
  }
  throw new Error('the text was accepted');
}

/** The problems of a text as `line:column message (hint)`. */
export function problemsOf(source: string, added: Partial<TaskSource> = {}): readonly string[] {
  return refusalOf(source, added).problems.map(problemLine);
}

/** One problem on one line. */
export function problemLine({ line, column, message, hint }: Problem): string {
  return `${line}:${column} ${message}${hint === undefined ? '' : ` (${hint})`}`;
}

/** Returns the error code of a refused text; undefined when it is accepted. */
export function codeOf(source: string, added: Partial<TaskSource> = {}): ErrorCode | undefined {
  try {
    parseText(source, added);
    return undefined;
  } catch (error: unknown) {
    if (error instanceof SvcError) return error.code;
    throw error;
  }
}
