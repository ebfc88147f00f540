import type { Clock } from '../../shared/clock.ts';
import type { Random } from '../../shared/random.ts';
import {
  isMachineId,
  type LateRefusal,
  type MachineId,
  type MachineNotice,
  type MachineSilence,
  type MachineSpec,
  type Offer,
} from '../provider.ts';
import { FakeMachine, type JobBehaviour } from './fake-machine.ts';

/** Reply to a request for a machine. */
interface FakeAnswer {
  /** Delay of the reply, ms; infinity: never. At once when absent. */
  readonly afterMs?: number;
  /** Thrown instead of creating a machine. */
  readonly refusal?: Error | undefined;
}

/** How the provider behaves. Tests may change all of it during use. */
interface FakeConduct {
  /** Duration of each call, ms. */
  callMs: number;
  /** From accepting to running, ms. */
  bootMs: number;
  /** Maximum number of machines. */
  capacity: number;
  /** Why the provider refuses new machines although it has capacity. */
  refuseWith: 'capacity' | 'quota' | undefined;
  /** Reply per offer, for tests where offers behave differently. It applies in addition to the settings above. */
  answerTo: (offer: Offer) => FakeAnswer;
  /** Called before and after each call takes effect. The caller gets the error that it throws. */
  onCall: (when: 'before' | 'after') => void;
  /** Whether the provider pushes changes to watchers; otherwise callers find them by polling. */
  pushesChanges: boolean;
  /** Share of the calls, from 0 to 1, that take effect but lose their reply. */
  lostReplies: number;
  /** Behaviour of jobs on each node of the machine with the given number, counting from 1. */
  jobOf: (machineNumber: number, rank: number) => JobBehaviour;
  /** Why a machine does not run in time; empty: it does. */
  bootOf: (machineNumber: number, offer: Offer) => FakeBoot;
}

/** How a machine boots. An empty object means that it runs in time. */
interface FakeBoot {
  /** Shown while it boots. */
  readonly message?: string;
  /** It never runs, and an identical machine would not either. */
  readonly hopeless?: string;
  /** The provider refuses it after it had accepted. */
  readonly refused?: LateRefusal & { readonly message: string };
}

/** The state of a provider in memory, shared by every `FakeProvider` that is opened on it. */
export class FakeCloud {
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
    pushesChanges: true,
    lostReplies: 0,
    jobOf: () => ({}),
    bootOf: () => ({}),
  };
  /** All machines ever created, including gone ones. Tests find duplicates and leftovers in it. */
  readonly machines = new Map<MachineId, FakeMachine>();
  /** Callbacks for changes. */
  readonly watchers = new Set<() => void>();
  /** Owners for which `release` was called. */
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
        for (const notify of this.watchers) notify();
      },
    });
    this.machines.set(id, machine);
    const { message, hopeless, refused } = this.conduct.bootOf(number, offer);
    if (message !== undefined) machine.say(message);
    if (hopeless !== undefined) {
      machine.isHopeless = true;
      machine.end('unknown', hopeless);
    }
    if (refused !== undefined) {
      machine.refusal = { kind: refused.kind, scope: refused.scope };
      machine.end('unknown', refused.message);
    }
    return machine;
  }

  /** Reclaims a machine, as providers do with spot machines. */
  preempt(id: MachineId, message?: string): void {
    this.machines.get(id)?.end('preempted', message);
  }

  /** Announces that a machine will be reclaimed, or may be. */
  announce(id: MachineId, notice: MachineNotice): void {
    const machine = this.machines.get(id);
    if (machine !== undefined) machine.notice = notice;
    for (const notify of this.watchers) notify();
  }

  /** The provider loses sight of a machine's state; undefined: it knows the state again. */
  silence(id: MachineId, silence: MachineSilence | undefined): void {
    const machine = this.machines.get(id);
    if (machine !== undefined) machine.silence = silence;
    for (const notify of this.watchers) notify();
  }

  /** Whether a program answers at an address that a machine's remote returned. */
  isServing(host: string): boolean {
    return this.living.some((machine) => machine.host === host && machine.isServing());
  }
}
