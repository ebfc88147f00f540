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
  /** Delay, ms; infinity: never. */
  readonly afterMs?: number;
  /** Thrown instead of creating a machine. */
  readonly refusal?: Error | undefined;
}

/** Tests may change all of it during use. */
interface FakeConduct {
  /** Duration of each call, ms. */
  callMs: number;
  /** Time from accepting to running, ms. */
  bootMs: number;
  capacity: number;
  /** Why it refuses new machines although it has capacity. */
  refuseWith: 'capacity' | 'quota' | undefined;
  /** Applies in addition to the settings above. */
  answerTo: (offer: Offer) => FakeAnswer;
  /** Called before and after a call takes effect. The caller gets the error that it throws. */
  onCall: (when: 'before' | 'after') => void;
  pushesChanges: boolean;
  /** A region that denies access to its machines. */
  deniedRegion: string | undefined;
  /** Share of the calls, 0 to 1, that take effect but lose their reply. */
  lostReplies: number;
  /** `machineNumber` counts from 1. */
  jobOf: (machineNumber: number, rank: number) => JobBehaviour;
  bootOf: (machineNumber: number, offer: Offer) => FakeBoot;
}

/** An empty object: the machine runs in time. */
interface FakeBoot {
  readonly message?: string;
  /** It never runs, and neither would an identical machine. */
  readonly hopeless?: string;
  /** The provider refuses it after it had accepted. */
  readonly refused?: LateRefusal & { readonly message: string };
}

/** The state of a provider in memory, shared by every `FakeProvider` on it. */
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
    deniedRegion: undefined,
    lostReplies: 0,
    jobOf: () => ({}),
    bootOf: () => ({}),
  };
  /** Also gone ones: tests find duplicates and leftovers. */
  readonly machines = new Map<MachineId, FakeMachine>();
  readonly watchers = new Set<() => void>();
  /** Owners for which `release` was called. */
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

  announce(id: MachineId, notice: MachineNotice): void {
    const machine = this.machines.get(id);
    if (machine !== undefined) machine.notice = notice;
    for (const notify of this.watchers) notify();
  }

  /** `silence` undefined: the provider knows the machine's state again. */
  silence(id: MachineId, silence: MachineSilence | undefined): void {
    const machine = this.machines.get(id);
    if (machine !== undefined) machine.silence = silence;
    for (const notify of this.watchers) notify();
  }

  isServing(host: string): boolean {
    return this.living.some((machine) => machine.host === host && machine.isServing());
  }
}
