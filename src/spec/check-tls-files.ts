import { readFile } from 'node:fs/promises';
import type { Task } from '../domain/task.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { judgeClientCa, judgeTlsPair } from '../shared/system/tls-pair.ts';
import { openTask, type TaskSource } from './task-document.ts';

/**
 * Checks that the TLS files of a service can serve its endpoint at `now` (ms since the epoch). Throws
 * SVC_BAD_CERTIFICATE with a problem for each file that cannot, and SVC_FILE_UNREADABLE. Returns a warning for users
 * when the certificate expires soon.
 */
export async function checkTlsFiles({ service }: Task, source: TaskSource, now: number): Promise<string | undefined> {
  if (service?.tls === undefined) return undefined;
  const { keyfile, certfile, clientCa } = service.tls;
  const { faults, notInForce, warning } = judgeTlsPair(await textOf(keyfile, 'key'), await textOf(certfile, 'certificate'), now);
  const clientFault = clientCa === undefined ? undefined : judgeClientCa(await textOf(clientCa, 'client_ca'));
  const refusals = [...faults, notInForce, clientFault].filter((fault) => fault !== undefined);
  if (refusals.length === 0) return warning;
  const { report } = openTask(source);
  for (const { field, reason, hint } of refusals) report.at(['service', 'tls', field], reason, hint);
  throw report.toError('SVC_BAD_CERTIFICATE', 'The task file', {
    message: `The endpoint cannot be served over TLS with the files that ${source.file} names.`,
  });
}

async function textOf(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'latin1');
  } catch (error) {
    throw new SvcError('SVC_FILE_UNREADABLE', `The TLS ${what} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}
