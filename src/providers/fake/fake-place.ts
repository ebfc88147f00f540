import type { Clock } from '../../shared/clock.ts';
import type { Random } from '../../shared/random.ts';
import { isMachineId, type MachineId, type MachineNotice, type MachineSpec, type Offer } from '../provider.ts';
import { FakeMachine, type JobBehaviour } from './fake-machine.ts';

/** An answer to the wish for a machine. */
export interface FakeAnswer {
  /** It comes after so long, ms; infinity is never. At once when absent. */
  readonly afterMs?: number;
  /** Given instead of a machine. */
  readonly refusal?: Error | undefined;
}

/** How a place behaves. All of it may be changed while it is in use. */
export interface FakeConduct {
  /** Each call takes so long, ms. */
  callMs: number;
  /** From accepting to running, ms. */
  bootMs: number;
  /** Machines there is room for. */
  capacity: number;
  /** Why new machines are refused although there is room. */
  refuseWith: 'capacity' | 'quota' | undefined;
  /** What a place of its own for each kind of machine says to the wish for one more, beside all that stands above. */
  answerTo: (offer: Offer) => FakeAnswer;
  /** Told of each call before it has its effect and after it; what it throws, the caller gets. */
  onCall: (when: 'before' | 'after') => void;
  /** Whether changes are told to those who watch, rather than found by those who ask. */
  tells: boolean;
  /** How many of the calls, from 0 to 1, are carried out but their reply is lost. */
  lostReplies: number;
  /** What the jobs of the machine with the given number, counting from 1, do on each of its nodes. */
  jobOf: (machineNumber: number, rank: number) => JobBehaviour;
  /** Why a machine does not run, instead of running in time. */
  bootOf: (machineNumber: number, offer: Offer) => FakeBoot;
}

/** How a machine boots. Without anything it runs in time. */
export interface FakeBoot {
  /** Told while it boots. */
  readonly message?: string;
  /** It never runs, and nothing like it does. */
  readonly hopeless?: string;
}

/** A place in memory: what there is, whoever looks at it. Several providers may be opened on one. */
export class FakePlace {
  readonly clock: Clock;
  readonly random: Random;
  readonly offers: readonly Offer[];
  readonly conduct: FakeConduct = {
    callMs: 0,
    bootMs: 0,
    capacity: Number.POSITIVE_INFINITY,
    refuseWith: undefined,
    answerTo: () => ({}),
    onCall: () => undefined,
    tells: true,
    lostReplies: 0,
    jobOf: () => ({}),
    bootOf: () => ({}),
  };
  /** Every machine there ever was, also those that are gone: for finding what was made twice or left behind. */
  readonly machines = new Map<MachineId, FakeMachine>();
  /** Who is told of changes. */
  readonly watchers = new Set<() => void>();
  /** Owners of whom nothing was to be left. */
  readonly releases: string[] = [];

  constructor(clock: Clock, random: Random, offers: readonly Offer[]) {
    this.clock = clock;
    this.random = random;
    this.offers = offers;
  }

  /** Machines that cost money now. */
  get living(): readonly FakeMachine[] {
    return [...this.machines.values()].filter((machine) => machine.goneReason === undefined);
  }

  add(key: string, offer: Offer, spec: MachineSpec): FakeMachine {
    const number = this.machines.size + 1;
    const id = `fake-${number}`;
    if (!isMachineId(id)) throw new Error('an id is never empty');
    const machine = new FakeMachine({
      id,
      key,
      offer,
      spec,
      clock: this.clock,
      runsAt: this.clock.monotonic() + this.conduct.bootMs,
      behaviourOf: (rank) => this.conduct.jobOf(number, rank),
      onChange: () => {
        for (const tell of this.watchers) tell();
      },
    });
    this.machines.set(id, machine);
    const { message, hopeless } = this.conduct.bootOf(number, offer);
    if (message !== undefined) machine.say(message);
    if (hopeless !== undefined) {
      machine.isHopeless = true;
      machine.end('unknown', hopeless);
    }
    return machine;
  }

  /** Takes a machine away, as places do with cheap ones. */
  preempt(id: MachineId, message?: string): void {
    this.machines.get(id)?.end('preempted', message);
  }

  /** Says that a machine will be taken away, or may be. */
  announce(id: MachineId, notice: MachineNotice): void {
    const machine = this.machines.get(id);
    if (machine !== undefined) machine.notice = notice;
    for (const tell of this.watchers) tell();
  }

  /** Whether a program answers at an address that a machine's remote gave. */
  isServing(host: string): boolean {
    return this.living.some((machine) => machine.host === host && machine.isServing());
  }
}
