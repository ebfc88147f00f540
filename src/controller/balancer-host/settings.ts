import { balancerHostPort } from '../../domain/balancer-host.ts';
import { envVar } from '../../shared/env.ts';
import { SvcError } from '../../shared/errors.ts';

/** What a balancer host is started with; see `domain/balancer-host.ts`. */
export interface HostSettings {
  readonly tokenFile: string;
  readonly port: number;
  readonly address: string;
  /** Whether others of its kind are pods of its namespace. */
  readonly hasPeers: boolean;
}

/** Reads the environment. Throws SVC_INVALID_CONFIG. */
export function hostSettings(): HostSettings {
  const tokenFile = envVar('SVC_BALANCER_TOKEN_FILE');
  if (tokenFile === undefined)
    throw wrong('SVC_BALANCER_TOKEN_FILE names no file', 'Set it to the file that holds the token of the controller.');
  const port = Number(envVar('SVC_BALANCER_PORT') ?? balancerHostPort);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw wrong('SVC_BALANCER_PORT is no port', 'Set it to a number from 1 to 65535.');
  const peers = envVar('SVC_BALANCER_PEERS');
  if (peers !== undefined && peers !== 'kubernetes')
    throw wrong(`SVC_BALANCER_PEERS is '${peers}'`, 'Set it to kubernetes, or not at all.');
  return { tokenFile, port, address: envVar('SVC_BALANCER_ADDRESS') ?? '0.0.0.0', hasPeers: peers === 'kubernetes' };
}

function wrong(message: string, hint: string): SvcError {
  return new SvcError('SVC_INVALID_CONFIG', `A balancer host cannot start: ${message}.`, { hint });
}
