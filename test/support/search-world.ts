import { aMachineSpec, someResources } from './builders.ts';
import { FakeClock } from './fake-clock.ts';
import { statesOf } from './providers.ts';
import { aStubProvider } from './stub-provider.ts';
import type { MachineId, MachineSpec, MachineStatus, Offer, Provider } from '../../src/providers/provider.ts';
import { obtainMachine, type GivenMachine, type MachineRequest } from '../../src/provision/acquire-machine.ts';
import { PlacementHistory } from '../../src/provision/placement-history.ts';

/** The provider's `create` of a test. */
export type Create = (offer: Offer, key: string, spec: MachineSpec) => MachineId | Promise<MachineId>;

/** Searches for a machine in virtual time, at a provider whose `create` the test defines. */
export class SearchWorld {
  readonly clock = new FakeClock();
  readonly asked: string[] = [];
  readonly destroyed: string[] = [];
  readonly stop = new AbortController();
  readonly process = new AbortController();
  states: Readonly<Record<string, MachineStatus>> = {};
  history = new PlacementHistory();
  readonly provider: Provider;
  readonly #offers: readonly Offer[];

  constructor(offers: readonly Offer[], create: Create, given: Partial<Provider> = {}) {
    this.#offers = offers;
    this.provider = aStubProvider({
      offers: () => Promise.resolve({ offers: this.#offers, whyNone: undefined }),
      create: async (offer, spec, key) => {
        this.asked.push(offer.region);
        return create(offer, key, spec);
      },
      inspect: (ids) => Promise.resolve(new Map(ids.map((id) => [id, this.states[id] ?? { state: 'running' }]))),
      destroy: (id) => Promise.resolve(void this.destroyed.push(id)),
      ...given,
    });
  }

  /** Starts a search; its log and result can be read later. */
  launch(
    change: Partial<MachineRequest> = {},
    found?: GivenMachine,
  ): { readonly notes: string[]; readonly given: () => string | undefined } {
    const notes: string[] = [];
    let result: string | undefined;
    const request: MachineRequest = {
      alternatives: { order: 'any', choices: [someResources()] },
      providers: () => Promise.resolve(statesOf(this.provider)),
      history: this.history,
      occupied: () => [],
      spec: () => aMachineSpec(),
      key: 'key',
      clock: this.clock,
      step: async (step) => {
        const detail = 'offer' in step ? step.offer.region : `${step.until - this.clock.now()} ms`;
        notes.push(`${step.type} ${detail}`);
        await Promise.resolve();
      },
      background: this.process.signal,
      ...change,
    };
    obtainMachine(request, found, this.stop.signal).then(
      ({ offer, machineId }) => (result = `${machineId} at ${offer.region}`),
      (error: unknown) => (result = String(error)),
    );
    return { notes, given: () => result };
  }
}
