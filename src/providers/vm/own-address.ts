import { connect } from 'node:net';
import { isAddressRange } from '../../shared/address-range.ts';
import type { Clock } from '../../shared/clock.ts';
import { withDeadline } from '../../shared/deadline.ts';
import { messageOf, SvcError } from '../../shared/errors.ts';
import { Remembered } from './remembered.ts';

/** A service that reports the source address of this machine's connections. */
export interface AddressService {
  /** The cloud, in messages. */
  readonly title: string;
  /** Returns the address as plain text. */
  readonly url: string;
  /** The setting that overrides the address: `aws.ssh_from`. */
  readonly setting: string;
  /** A custom API endpoint. The address is then that of a connection to it. */
  endpoint(): string | undefined;
}

const timeoutMs = 5_000;
const tooLong = (): Error => new Error(`no answer within ${timeoutMs / 1_000} s`);

/** A laptop that moves gets its new address within this time, ms. */
const rememberedMs = 600_000;

/** The address from which this machine's connections arrive at a cloud. */
export class OwnAddress {
  readonly #known: Remembered<string>;
  readonly #clock: Clock;
  readonly #service: AddressService;

  constructor(clock: Clock, service: AddressService) {
    this.#clock = clock;
    this.#service = service;
    this.#known = new Remembered(clock, rememberedMs);
  }

  /** `isFresh`: it may have changed a moment ago. Throws SVC_PLACE_FAILED when it cannot be found. */
  find(signal: AbortSignal | undefined, { isFresh = false }: { readonly isFresh?: boolean } = {}): Promise<string> {
    if (isFresh) this.#known.clear();
    const { title, url, setting } = this.#service;
    const endpoint = this.#service.endpoint();
    return this.#known.get(endpoint ?? '', async () => {
      try {
        return await withDeadline(
          this.#clock,
          timeoutMs,
          (inner) => (endpoint === undefined ? askService(url, inner) : addressTowards(new URL(endpoint), inner)),
          tooLong,
          signal,
        );
      } catch (error) {
        signal?.throwIfAborted();
        throw new SvcError(
          'SVC_PLACE_FAILED',
          `The address under which ${title} sees this machine could not be found: ${messageOf(error)}`,
          {
            hint: `Give it as ${setting} in config.yaml.`,
            cause: error,
          },
        );
      }
    });
  }
}

async function askService(url: string, signal: AbortSignal): Promise<string> {
  const reply = await fetch(url, { signal });
  const text = (await reply.text()).trim();
  if (!reply.ok || !isAddressRange(text) || text.includes('/')) throw new Error(`${url} answered ${reply.status} without an address`);
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
