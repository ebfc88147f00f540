import { type ProviderContext, openProvider, providerNames } from '../providers/registry.ts';
import type { Provider, ProviderCheck } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline, withLateness, unlessAborted } from '../shared/deadline.ts';
import { messageOf } from '../shared/errors.ts';
import { type Fence, fenced } from '../shared/fence.ts';
import type { Remote } from '../remote/remote.ts';

/** A provider's last known state; `check.summary` says why it is unusable. */
export interface ProviderState {
  readonly name: string;
  readonly check: ProviderCheck;
  /** Undefined: unusable. */
  readonly provider: Provider | undefined;
  /** Present while a check is running, so the state is unknown. Settles when the check ends; never rejects. */
  readonly late?: Promise<unknown>;
}

/** The providers. Each is opened on first use. */
export interface Providers {
  /** Enabled or not: a machine may outlive the enabling of its provider. */
  provider(name: string): Promise<Provider>;
  /** Only the enabled ones. */
  providers(): Promise<readonly Provider[]>;
  /** All, in the registry's order, with states of the last minute. Never throws because a provider failed. */
  states(): Promise<readonly ProviderState[]>;
}

/** Lifetime of a check's result, ms. The result "slow" has a shorter one: it may be over soon. */
const checkAgeMs = 60_000;
const slowAgeMs = 15_000;

/** Time a caller waits for a check, ms: a slow provider must not delay the others. The check continues. */
const checkWaitMs = 10_000;

/** The wait if the last result is at most `knownAgeMs` old; that result is then used. */
const knownWaitMs = 2_000;
const knownAgeMs = 600_000;

/** Total limit, ms. While a provider reports slow parts, its check is repeated. */
const checkLimitMs = 30_000;
const slowPauseMs = 1_000;

interface ProviderSource {
  readonly names: readonly string[];
  readonly open: (name: string) => Promise<Provider>;
  readonly clock: Clock;
  /** Undefined: all. */
  readonly allowed: () => Promise<readonly string[] | undefined>;
  /** Cancels checks without a waiting caller. */
  readonly signal?: AbortSignal | undefined;
}

/** The providers of the registry that the configuration allows. */
export function createProviders(context: ProviderContext, signal?: AbortSignal): Providers {
  return providersFrom({
    names: providerNames,
    open: async (name) => fencedProvider(await openProvider(name, context), context.fence),
    clock: context.clock,
    allowed: async () => (await context.config()).allowedClouds,
    signal,
  });
}

interface Known {
  readonly check: ProviderCheck;
  readonly at: number;
}

interface Pending {
  readonly since: number;
  readonly over: Promise<Known>;
}

const tooLong = `its check did not end within ${checkLimitMs / 1_000} s`;

class CheckTooLong extends Error {}

/**
 * Opens each provider once and checks it at most once a minute. A failed open is retried at the next call. A provider
 * with a slow check is unusable only until the check ends; if it was usable minutes ago, it stays usable.
 */
export function providersFrom({ names, open, clock, allowed, signal }: ProviderSource): Providers {
  const opened = new Map<string, Promise<Provider>>();
  const knowns = new Map<string, Known>();
  const pendings = new Map<string, Pending>();
  /** Why a running check is slow, as the provider reports it. */
  const slowness = new Map<string, string>();

  const provider = async (name: string): Promise<Provider> => {
    const opening = opened.get(name) ?? open(name);
    opened.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      opened.delete(name);
      throw error;
    }
  };

  const runCheck = async (name: string, ms: number): Promise<ProviderCheck> => {
    const ask = async (inner: AbortSignal): Promise<ProviderCheck> => (await provider(name)).check({ signal: inner });
    try {
      return await withDeadline(clock, ms, ask, () => new CheckTooLong(), signal);
    } catch (error) {
      if (error instanceof CheckTooLong) return { ...unusable(`${tooLong}.`, `Run: svc check ${name}`), slow: tooLong };
      return unusable(messageOf(error), `Run: svc check ${name}`);
    }
  };

  /** Never rejects. */
  const toItsEnd = async (name: string): Promise<Known> => {
    const until = clock.monotonic() + checkLimitMs;
    for (;;) {
      const check = await runCheck(name, until - clock.monotonic());
      const at = clock.monotonic();
      if (check.enabled || check.slow === undefined || at + slowPauseMs >= until) return { check, at };
      slowness.set(name, check.slow);
      await clock.sleep(slowPauseMs, signal);
    }
  };

  const begin = (name: string): Pending => {
    const over = toItsEnd(name).then((known) => {
      knowns.set(name, known);
      pendings.delete(name);
      slowness.delete(name);
      return known;
    });
    const pending = { since: clock.monotonic(), over };
    pendings.set(name, pending);
    return pending;
  };

  const checkOf = async (name: string): Promise<Pick<ProviderState, 'check' | 'late'>> => {
    const known = knowns.get(name);
    const age = known === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - known.at;
    if (known !== undefined && age < (known.check.slow === undefined ? checkAgeMs : slowAgeMs)) return { check: known.check };
    const { since, over } = pendings.get(name) ?? begin(name);
    const waitMs = age < knownAgeMs ? knownWaitMs : checkWaitMs;
    const leftMs = since + waitMs - clock.monotonic();
    const found = leftMs <= 0 ? undefined : await withLateness(clock, leftMs, (late) => Promise.race([over, late]));
    if (found !== undefined) return { check: found.check };
    if (known?.check.enabled === true && age < knownAgeMs) return { check: known.check };
    const why = slowness.get(name) ?? `its check did not end within ${waitMs / 1_000} s`;
    return { check: { ...unusable(`answers slowly: ${why}; trying again`, `Run: svc check ${name}`), slow: why }, late: over };
  };

  const states = async (): Promise<readonly ProviderState[]> => {
    const only = await allowed();
    return Promise.all(
      names.map(async (name): Promise<ProviderState> => {
        if (only !== undefined && !only.includes(name)) {
          return { name, provider: undefined, check: unusable('not among allowed_clouds', 'Add it to allowed_clouds in config.yaml') };
        }
        const { check, late } = await checkOf(name);
        return { name, check, provider: check.enabled ? await provider(name) : undefined, ...(late !== undefined && { late }) };
      }),
    );
  };

  return { provider, states, providers: async () => (await states()).flatMap((state) => state.provider ?? []) };
}

function unusable(summary: string, remedy: string): ProviderCheck {
  return { enabled: false, summary, remedies: [remedy], details: [], sharedPorts: undefined };
}

/** Why a provider is not used: a clause with a full stop. A running check does not mean disabled. */
export function whyOut({ check, late }: Pick<ProviderState, 'check' | 'late'>): string {
  const summary = check.summary.replace(/\.$/, '');
  if (late !== undefined) return `${summary}.`;
  return check.slow === undefined ? `not enabled: ${summary}.` : `does not answer: ${check.slow}.`;
}

/** Waits for all running checks, which have time limits. `onWait` receives a text about the wait. */
export async function settledStates(
  states: () => Promise<readonly ProviderState[]>,
  onWait: (text: string) => void = () => undefined,
  signal?: AbortSignal,
): Promise<readonly ProviderState[]> {
  const first = await states();
  const slow = first.filter((state) => state.late !== undefined);
  const late = slow.flatMap((state) => state.late ?? []);
  if (late.length === 0) return first;
  onWait(`Waiting for ${slow.map(({ name, check }) => `${name}, which ${check.summary.replace(/; trying again$/, '')}`).join('; ')}`);
  await unlessAborted(Promise.all(late), signal);
  return states();
}

/** Calls `ask` with the current states. If its answer does not suffice, waits for late providers and asks again. */
export async function askProviders<Answer>(
  states: () => Promise<readonly ProviderState[]>,
  ask: (providers: readonly ProviderState[]) => Answer | Promise<Answer>,
  suffices: (answer: Answer, providers: readonly ProviderState[]) => boolean,
  { onWait, signal }: { readonly onWait?: ((text: string) => void) | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<{ readonly providers: readonly ProviderState[]; readonly answer: Answer }> {
  const first = await states();
  const answer = await ask(first);
  if (suffices(answer, first) || first.every(({ late }) => late === undefined)) return { providers: first, answer };
  const providers = await settledStates(states, onWait, signal);
  return { providers, answer: await ask(providers) };
}

/**
 * Wraps a provider and its machines: every call fails once the fence is closed. Providers check the fence before each
 * request themselves; the wrapper covers calls without a request.
 */
export function fencedProvider(provider: Provider, fence: Fence): Provider {
  return fenced(provider, fence, {
    free: ['remote'],
    wrap: {
      remote: (remote) => fencedRemote(remote, fence),
      nodes: async (nodes) => (await nodes).map((node) => ({ ...node, remote: fencedRemote(node.remote, fence) })),
    },
  });
}

function fencedRemote(remote: Remote, fence: Fence): Remote {
  return fenced(remote, fence, { free: ['localPath'] });
}
