import type { ListedMachine, ListOptions, Provider } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { destroyMachine } from './machine.ts';
import { asSentence } from '../shared/text.ts';
import type { Providers } from './providers.ts';

/** Limit for a provider's confirmation that a machine is gone, ms. */
export const goneTimeoutMs = 600_000;

/** Limit for releasing other resources of removed machines, and the poll interval, ms. */
const releaseTimeoutMs = 180_000;
const releasePollMs = 2_000;

/** Limit for listing machines to remove, ms: AWS may have to ask all regions. */
const listToRemoveMs = 60_000;

interface CallDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface RemovalDeps extends CallDeps {
  readonly onStep?: (text: string) => void;
}

type ListDeps = CallDeps & Pick<ListOptions, 'requestedOnly' | 'onDenied'>;

type Tags = Readonly<Record<string, string>>;

/** Lists machines with all tags. Throws SVC_PLACE_FAILED after `timeoutMs`, even if the provider ignores its signal. */
export function listWithin(
  provider: Provider,
  tags: Tags,
  timeoutMs: number,
  { clock, signal, onDenied, requestedOnly = false }: ListDeps,
): Promise<readonly ListedMachine[]> {
  const options = { requestedOnly, ...(onDenied !== undefined && { onDenied }) };
  const list = (inner: AbortSignal): Promise<readonly ListedMachine[]> => provider.list(tags, { ...options, signal: inner });
  const noAnswer = (): Error =>
    new SvcError('SVC_PLACE_FAILED', `The provider ${provider.name} did not list its machines within ${timeoutMs / 1_000} s.`);
  return withDeadline(clock, timeoutMs, list, noAnswer, signal);
}

interface Inventory {
  readonly provider: string;
  readonly machines: readonly ListedMachine[];
  readonly error?: unknown;
}

/**
 * Lists machines with some tags at every provider, enabled or not: with an expired login a machine still runs and is
 * billed. A provider that this home never used sends no request.
 */
export async function listEverywhere(
  providers: Pick<Providers, 'states' | 'provider'>,
  tags: Tags,
  timeoutMs: number,
  deps: CallDeps,
): Promise<readonly Inventory[]> {
  const states = await providers.states();
  return Promise.all(
    states.map(async ({ name }): Promise<Inventory> => {
      try {
        return { provider: name, machines: await listWithin(await providers.provider(name), tags, timeoutMs, deps) };
      } catch (error) {
        deps.signal.throwIfAborted();
        return { provider: name, machines: [], error };
      }
    }),
  );
}

/**
 * Destroys all machines with these tags, and releases what providers made for `owner`. Failing providers do not block
 * others: SVC_CLEANUP_FAILED names them at the end. The caller then keeps its record of the machines.
 */
export async function removeEverywhere(
  providers: Pick<Providers, 'states' | 'provider'>,
  tags: Tags,
  owner: string,
  deps: RemovalDeps,
): Promise<void> {
  const { clock, signal, onStep } = deps;
  const failures: { readonly error: unknown; readonly text: string }[] = [];
  const removeAt = async ({ provider: name, machines, error }: Inventory): Promise<void> => {
    if (error !== undefined) {
      failures.push({ error, text: `The provider ${name} could not be asked for machines: ${messageOf(error)}` });
      return;
    }
    try {
      const provider = await providers.provider(name);
      const destroy = async ({ id }: ListedMachine): Promise<void> => {
        onStep?.(`Removing machine ${id}`);
        await destroyMachine(provider, id, clock, goneTimeoutMs, signal);
      };
      await Promise.all(machines.map(destroy));
      const owners = machines.map(({ tags: own }) => own['svc-service-key'] ?? own['svc-key'] ?? owner);
      for (const one of new Set([...owners, owner])) await releaseWhenFree(provider, one, deps);
    } catch (failure) {
      signal.throwIfAborted();
      failures.push({ error: failure, text: messageOf(failure) });
    }
  };
  await Promise.all((await listEverywhere(providers, tags, listToRemoveMs, deps)).map(removeAt));
  const [first] = failures;
  if (first === undefined) return;
  const hint = 'Machines may still run, and be billed. Repair the cause (see: svc check), then run the command again.';
  throw new SvcError('SVC_CLEANUP_FAILED', failures.map(({ text }) => text).join(' '), {
    hint: first.error instanceof SvcError ? (first.error.hint ?? hint) : hint,
    cause: first.error,
  });
}

/**
 * Retries: a provider may hold resources while a machine that uses them is ending. Reports regions that deny access to
 * `onStep`: their resources stay.
 */
export async function releaseWhenFree(provider: Provider, owner: string, { clock, signal, onStep }: RemovalDeps): Promise<void> {
  const onDenied = (error: SvcError): void => onStep?.(`${asSentence(error.message)} Resources in that region stay.`);
  const deadline = clock.monotonic() + releaseTimeoutMs;
  for (;;) {
    try {
      return await provider.release(owner, { signal, onDenied });
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'SVC_PLACE_FAILED' || clock.monotonic() >= deadline) throw error;
      await clock.sleep(releasePollMs, signal);
      signal.throwIfAborted();
    }
  }
}
