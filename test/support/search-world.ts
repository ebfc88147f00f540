import { aMachineSpec, someResources } from './builders.ts';
import { FakeClock } from './fake-clock.ts';
import { statesOf } from './places.ts';
import { aStubPlace } from './stub-place.ts';
import type { MachineId, MachineSpec, MachineStatus, Offer, Provider } from '../../src/providers/provider.ts';
import { obtainMachine, type GivenMachine, type MachineRequest } from '../../src/provision/acquire-machine.ts';
import { PlacementHistory } from '../../src/provision/placement-history.ts';

/** What the place does when it is asked for a machine. */
export type Create = (offer: Offer, key: string, spec: MachineSpec) => MachineId | Promise<MachineId>;

/** Searches for a machine in virtual time, at a place whose `create` does what the test says. */
export class SearchWorld {
  readonly clock = new FakeClock();
  readonly asked: string[] = [];
  readonly destroyed: string[] = [];
  readonly stop = new AbortController();
  readonly process = new AbortController();
  states: Readonly<Record<string, MachineStatus>> = {};
  history = new PlacementHistory();
  readonly place: Provider;
  readonly #offers: readonly Offer[];

  constructor(offers: readonly Offer[], create: Create, given: Partial<Provider> = {}) {
    this.#offers = offers;
    this.place = aStubPlace({
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

  /** Starts a search; what it notes and gives can be read later. */
  launch(
    change: Partial<MachineRequest> = {},
    found?: GivenMachine,
  ): { readonly notes: string[]; readonly given: () => string | undefined } {
    const notes: string[] = [];
    let result: string | undefined;
    const request: MachineRequest = {
      alternatives: { order: 'any', choices: [someResources()] },
      places: () => Promise.resolve(statesOf(this.place)),
      history: this.history,
      occupied: () => [],
      spec: () => aMachineSpec(),
      key: 'key',
      clock: this.clock,
      step: async (step) => {
        const where = 'offer' in step ? step.offer.region : `${step.until - this.clock.now()} ms`;
        notes.push(`${step.type} ${where}`);
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
