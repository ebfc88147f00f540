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

interface FakeAnswer {
  /** Delay, ms; infinity: never. Absent: at once. */
  readonly afterMs?: number;
  /** Thrown instead. */
  readonly refusal?: Error | undefined;
}

/** Tests may change all of it during use. */
interface FakeConduct {
  /** Of each call, ms. */
  callMs: number;
  /** From accepting to running, ms. */
  bootMs: number;
  /** Maximum of machines. */
  capacity: number;
  /** Refuses new machines although it has capacity. */
  refuseWith: 'capacity' | 'quota' | undefined;
  /** In addition to the settings above. */
  answerTo: (offer: Offer) => FakeAnswer;
  /** Called before and after a call takes effect. The caller gets the error that it throws. */
  onCall: (when: 'before' | 'after') => void;
  /** If not, callers find changes by polling. */
  pushesChanges: boolean;
  /** Share of calls, 0 to 1, that take effect but lose their reply. */
  lostReplies: number;
  /** `machineNumber` counts from 1. */
  jobOf: (machineNumber: number, rank: number) => JobBehaviour;
  /** Why a machine does not run in time. */
  bootOf: (machineNumber: number, offer: Offer) => FakeBoot;
}

/** Empty: it runs in time. */
interface FakeBoot {
  readonly message?: string;
  /** It never runs, nor would an identical machine. */
  readonly hopeless?: string;
  /** A refusal after the provider had accepted. */
  readonly refused?: LateRefusal & { readonly message: string };
}

/** A provider in memory. Every `FakeProvider` that is opened on it shares its state. */
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
  /** All machines ever created. Tests find duplicates and leftovers in it. */
  readonly machines = new Map<MachineId, FakeMachine>();
  readonly watchers = new Set<() => void>();
  /** Arguments of `release`. */
  readonly releases: string[] = [];

  constructor(clock: Clock, random: Random, offers: readonly Offer[]) {
    this.clock = clock;
    this.random = random;
    this.offers = offers;
  }

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

  preempt(id: MachineId, message?: string): void {
    this.machines.get(id)?.end('preempted', message);
  }

  /** The provider will reclaim the machine, or may. */
  announce(id: MachineId, notice: MachineNotice): void {
    const machine = this.machines.get(id);
    if (machine !== undefined) machine.notice = notice;
    for (const notify of this.watchers) notify();
  }

  /** The provider does not know the machine's state; undefined: it knows again. */
  silence(id: MachineId, silence: MachineSilence | undefined): void {
    const machine = this.machines.get(id);
    if (machine !== undefined) machine.silence = silence;
    for (const notify of this.watchers) notify();
  }

  /** By an address from a machine's remote. */
  isServing(host: string): boolean {
    return this.living.some((machine) => machine.host === host && machine.isServing());
  }
}
