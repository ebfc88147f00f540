import { edgeProxyPort } from '../../domain/edge-proxy/edge-proxy.ts';
import { envVar } from '../../shared/env.ts';
import { SvcError, messageOf } from '../../shared/errors.ts';
import type { Logger } from '../../shared/log.ts';

/** Startup settings of an edge proxy; see `domain/edge-proxy/edge-proxy.ts`. */
interface EdgeProxySettings {
  readonly tokenFile: string;
  readonly port: number;
  readonly address: string;
  /** Undefined outside a pod. */
  readonly labelsFile: string | undefined;
}

/** Reads the environment. Throws SVC_INVALID_CONFIG. */
export function edgeProxySettings(): EdgeProxySettings {
  const tokenFile = envVar('SVC_BALANCER_TOKEN_FILE');
  if (tokenFile === undefined)
    throw wrong('SVC_BALANCER_TOKEN_FILE names no file', 'Set it to the file that holds the token of the controller.');
  const address = envVar('SVC_BALANCER_ADDRESS') ?? '0.0.0.0';
  return { tokenFile, port: balancerPort(), address, labelsFile: envVar('SVC_BALANCER_LABELS_FILE') };
}

/** Port on which edge proxies take commands and answer probes. Throws SVC_INVALID_CONFIG. */
export function balancerPort(): number {
  const port = Number(envVar('SVC_BALANCER_PORT') ?? edgeProxyPort);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw wrong('SVC_BALANCER_PORT is no port', 'Set it to a number from 1 to 65535.');
  return port;
}

function wrong(message: string, hint: string): SvcError {
  return new SvcError('SVC_INVALID_CONFIG', `An edge proxy cannot start: ${message}.`, { hint });
}

/** Runs a pod's program to its end, then exits. Code 70 after an error shows Kubernetes that it failed. */
export async function runProgram(main: () => Promise<void>, log: Logger): Promise<never> {
  try {
    await main();
  } catch (error) {
    log.fatal({ err: error }, messageOf(error));
    process.exit(70);
  }
  process.exit(0);
}
