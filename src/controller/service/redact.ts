import type { Task } from '../../domain/task.ts';
import { redact } from '../../shared/redact.ts';

/** Names of variables whose values are kept out of everything that is shown, though they stand under `envs`. */
const secretName = /token|secret|passw|passphrase|credential|api_?key|private|auth/i;

/** A function that hides the task's secrets in a text, such as the last lines of a program's log. */
export function redactor(task: Task): (text: string) => string {
  const values = [
    ...Object.values(task.secrets),
    ...Object.entries(task.envs).flatMap(([name, value]) => (secretName.test(name) ? [value] : [])),
  ];
  return (text) => redact(text, values);
}
