import { toErrorReply } from '../shared/errors.ts';
import { oneLine, safeLines } from './display-text.ts';
import type { Ui } from './ui.ts';

/** How errors are shown. */
export interface ErrorOptions {
  /** One JSON document on standard output instead of text on standard error. */
  readonly json: boolean;
  /** Adds the stack, for bugs (`SVC_DEBUG=1`). */
  readonly debug: boolean;
}

/** Shows an error: the only place that does. */
export function showError(error: unknown, ui: Ui, options: ErrorOptions): void {
  const reply = toErrorReply(error);
  if (options.json) ui.json(reply);
  else {
    const { code, message, hint, problems } = reply.error;
    // Nothing is wrong with what somebody decided.
    if (code === 'SVC_ABORTED') {
      ui.say(oneLine(message));
      return;
    }
    const [first = '', ...rest] = safeLines(message);
    ui.say(`${ui.paintMessage('bad', 'error:')} ${first}`);
    for (const line of rest) ui.quote(line);
    for (const problem of problems) {
      ui.say('');
      ui.say(`${ui.paintMessage('strong', `${oneLine(problem.file)}:${problem.line}:${problem.column}:`)} ${oneLine(problem.message)}`);
      if (problem.excerpt !== undefined) for (const line of safeLines(problem.excerpt)) ui.quote(`  ${line}`);
      if (problem.hint !== undefined) ui.say(`  ${ui.paintMessage('quiet', 'hint:')} ${oneLine(problem.hint)}`);
    }
    if (problems.length > 0) ui.say('');
    ui.say(`${ui.paintMessage('quiet', 'hint:')} ${oneLine(hint)}`);
    ui.say(`${ui.paintMessage('quiet', 'code:')} ${code}`);
  }
  if (options.debug && error instanceof Error) ui.quote(error.stack ?? '');
}
