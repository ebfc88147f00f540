import { connect } from 'node:net';
import { isAddressRange } from '../../shared/address-range.ts';
import type { Clock } from '../../shared/clock.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { envVar } from '../../shared/env.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { Remembered } from './remembered.ts';

/** AWS's own answer to "from which address do I come": https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/changing-security-group.html */
const askedHost = 'https://checkip.amazonaws.com';

const timeoutMs = 5_000;
const tooLong = (): Error => new Error(`no answer within ${timeoutMs / 1_000} s`);

/** A laptop that moves finds out within this time, ms. */
const rememberedMs = 600_000;

/**
 * The address from which this machine's connections come when they arrive at AWS. Where an endpoint of the SDK is set, AWS is what stands there,
 * and the address is that of a connection to it.
 */
export class OwnAddress {
  readonly #known: Remembered<string>;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#known = new Remembered(clock, rememberedMs);
  }

  /** Throws SVC_PLACE_FAILED when it cannot be found. */
  find(signal: AbortSignal | undefined): Promise<string> {
    const endpoint = envVar('AWS_ENDPOINT_URL_EC2') ?? envVar('AWS_ENDPOINT_URL');
    return this.#known.get(endpoint ?? '', async () => {
      try {
        return await withDeadline(this.#clock, timeoutMs, (inner) => askFor(endpoint, inner), tooLong, signal);
      } catch (error) {
        signal?.throwIfAborted();
        throw new SvcError('SVC_PLACE_FAILED', `The address under which AWS sees this machine could not be found: ${messageOf(error)}`, {
          hint: 'Give it as aws.ssh_from in config.yaml.',
          cause: error,
        });
      }
    });
  }
}

function askFor(endpoint: string | undefined, signal: AbortSignal): Promise<string> {
  return endpoint === undefined ? askAws(signal) : addressTowards(new URL(endpoint), signal);
}

async function askAws(signal: AbortSignal): Promise<string> {
  const reply = await fetch(askedHost, { signal });
  const text = (await reply.text()).trim();
  if (!reply.ok || !isAddressRange(text) || text.includes('/')) throw new Error(`${askedHost} answered ${reply.status} without an address`);
  return text;
}

function addressTowards({ hostname, port, protocol }: URL, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const host = hostname.replaceAll(/[[\]]/g, '');
  const socket = connect({ host, port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port) });
  const abort = (): void => void socket.destroy(new Error('no answer'));
  signal.addEventListener('abort', abort, { once: true });
  socket.on('error', reject);
  socket.on('connect', () => {
    const address = socket.localAddress?.replace(/^::ffff:/, '');
    socket.destroy();
    if (address === undefined) reject(new Error('the connection has no address'));
    else resolve(address);
  });
  socket.on('close', () => signal.removeEventListener('abort', abort));
  return promise;
}
