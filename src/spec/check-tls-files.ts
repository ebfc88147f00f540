import { readFile } from 'node:fs/promises';
import type { Task } from '../domain/task.ts';
import { suitesForKey, tlsRules, tlsSuites, versionWithoutSuite, type TlsRules } from '../domain/tls-rules.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { judgeClientCa, judgeTlsPair, type TlsFault } from '../shared/system/tls-pair.ts';
import { openTask, type TaskSource } from './task-document.ts';

type Fault = Omit<TlsFault, 'field'> & { readonly field: TlsFault['field'] | 'ciphers' };

/**
 * Checks that the TLS files of a service can serve its endpoint at `now` (ms since the epoch). Throws
 * SVC_BAD_CERTIFICATE with a problem for each file that cannot, and SVC_FILE_UNREADABLE. Returns a warning for users
 * when the certificate expires soon.
 */
export async function checkTlsFiles({ service }: Task, source: TaskSource, now: number): Promise<string | undefined> {
  if (service?.tls === undefined) return undefined;
  const { keyfile, certfile, clientCa } = service.tls;
  const pair = judgeTlsPair(await textOf(keyfile, 'key'), await textOf(certfile, 'certificate'), now);
  const clientFault = clientCa === undefined ? undefined : judgeClientCa(await textOf(clientCa, 'client_ca'));
  const cipherFault = judgeCiphers(tlsRules(service.tls), pair.keyType);
  const refusals = [...pair.faults, pair.notInForce, clientFault, cipherFault].filter((fault) => fault !== undefined);
  if (refusals.length === 0) return pair.warning;
  const { report } = openTask(source);
  for (const { field, reason, hint } of refusals) report.at(['service', 'tls', field], reason, hint);
  throw report.toError('SVC_BAD_CERTIFICATE', 'The task file', {
    message: `The endpoint cannot be served over TLS with the files that ${source.file} names.`,
  });
}

/** Why no client of an accepted version could use the key. Clients would only see a failed handshake. */
function judgeCiphers({ minVersion, ciphers }: TlsRules, keyType: string | undefined): Fault | undefined {
  if (keyType === undefined) return undefined;
  const version = versionWithoutSuite({ minVersion, ciphers: suitesForKey(ciphers, keyType) });
  if (version === undefined) return undefined;
  const [example = ''] = suitesForKey(tlsSuites, keyType).filter((suite) => !suite.startsWith('TLS_'));
  const hint = `Add for instance ${example}, or set min_version: '1.3'.`;
  return { field: 'ciphers', reason: `has no suite of TLS ${version} for the key in keyfile, which is of type ${keyType}`, hint };
}

async function textOf(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, 'latin1');
  } catch (error) {
    throw new SvcError('SVC_FILE_UNREADABLE', `The TLS ${what} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}
