import type { Task } from '../../domain/task.ts';
import { redact } from '../../shared/redact.ts';

/** Names of variables whose values are kept out of everything that is shown, though they stand under `envs`. */
const secretName = /token|secret|passw|passphrase|credential|api_?key|private|auth/i;

/** Shorter lines of a longer value say little and occur elsewhere. */
const shortestLine = 8;

/** A function that hides the task's secrets in a text, such as the last lines of a program's log. */
export function redactor(task: Task): (text: string) => string {
  const values = [
    ...Object.values(task.secrets),
    ...Object.entries(task.envs).flatMap(([name, value]) => (secretName.test(name) ? [value] : [])),
  ];
  // A key of several lines must not come through line by line either.
  const lines = values.flatMap((value) => value.split('\n').filter((line) => value.includes('\n') && line.length >= shortestLine));
  return (text) => redact(text, [...values, ...lines]);
}
