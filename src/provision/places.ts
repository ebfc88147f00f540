import { openProvider, providerNames, type ProviderContext } from '../providers/registry.ts';
import type { Provider, ProviderCheck } from '../providers/provider.ts';
import type { Clock } from '../shared/clock.ts';
import { withDeadline } from '../shared/deadline.ts';
import { messageOf, SvcError } from '../shared/errors.ts';
import { fencedPlace } from './fenced-place.ts';

/** A place as it was found to be: usable, or out for the reason in `check.summary`. */
export interface PlaceState {
  readonly name: string;
  readonly check: ProviderCheck;
  /** Undefined where the place is out. */
  readonly provider: Provider | undefined;
}

/** The places, each opened when it is first needed. */
export interface Places {
  /** One place, enabled or not: a machine may outlive the enabling of its place. */
  provider(name: string): Promise<Provider>;
  /** The enabled ones. */
  providers(): Promise<readonly Provider[]>;
  /** All of them, in the registry's order, as they were within the last minute. Never throws for what a place does. */
  states(): Promise<readonly PlaceState[]>;
}

/** A check may take so long, ms: a place that cannot say so soon whether it can be used is not waited for. */
const checkTimeoutMs = 10_000;

/** What a check found holds for so long, ms. */
const checkAgeMs = 60_000;

/** Where `createPlaces` gets them from. */
export interface PlaceSource {
  readonly names: readonly string[];
  readonly open: (name: string) => Promise<Provider>;
  readonly clock: Clock;
  /** Places that may be used; undefined allows all. */
  readonly allowed: () => Promise<readonly string[] | undefined>;
}

/** The places of the registry, as the configuration allows them. */
export function createPlaces(context: ProviderContext): Places {
  return placesFrom({
    names: providerNames,
    open: async (name) => fencedPlace(await openProvider(name, context), context.fence),
    clock: context.clock,
    allowed: async () => (await context.config()).allowedClouds,
  });
}

const checkTooLong = (): Error => new SvcError('SVC_PLACE_FAILED', `its check did not end within ${checkTimeoutMs / 1_000} s`);

/** Opens each place once and checks it at most once a minute; one that could not be opened is tried again the next time. */
export function placesFrom({ names, open, clock, allowed }: PlaceSource): Places {
  const opened = new Map<string, Promise<Provider>>();
  const checked = new Map<string, { readonly at: number; readonly check: Promise<ProviderCheck> }>();

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

  const look = async (name: string): Promise<ProviderCheck> => {
    try {
      return await withDeadline(clock, checkTimeoutMs, async (signal) => (await provider(name)).check({ signal }), checkTooLong);
    } catch (error) {
      return unusable(messageOf(error), `Run: svc check ${name}`);
    }
  };

  const checkOf = (name: string): Promise<ProviderCheck> => {
    const known = checked.get(name);
    if (known !== undefined && clock.monotonic() - known.at < checkAgeMs) return known.check;
    const check = look(name);
    checked.set(name, { at: clock.monotonic(), check });
    return check;
  };

  const states = async (): Promise<readonly PlaceState[]> => {
    const only = await allowed();
    return Promise.all(
      names.map(async (name) => {
        if (only !== undefined && !only.includes(name)) {
          return { name, provider: undefined, check: unusable('not among allowed_clouds', 'Add it to allowed_clouds in config.yaml') };
        }
        const check = await checkOf(name);
        return { name, check, provider: check.enabled ? await provider(name) : undefined };
      }),
    );
  };

  return { provider, states, providers: async () => (await states()).flatMap((state) => state.provider ?? []) };
}

function unusable(summary: string, remedy: string): ProviderCheck {
  return { enabled: false, summary, remedies: [remedy], details: [], sharedPorts: undefined };
}
