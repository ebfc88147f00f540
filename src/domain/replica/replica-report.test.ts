import { expect, test } from 'vitest';
import { aServiceSpec } from '../../../test/support/builders.ts';
import { judgeProbe } from './probe.ts';
import { isSilentOrUnseen, nextMachineReport, noReport, withoutPastSilence, type MachineReport } from './replica-report.ts';

const silence = { cause: 'machine-lost', reason: 'It is silent.', isWidespread: true, isEnding: true } as const;

/** Verdict on a failed probe far past the failure threshold. */
function verdictOn(machine: MachineReport): string | undefined {
  const replica = { state: 'NOT_READY', firstProbeFailureAt: 0, isSilent: isSilentOrUnseen({ ...noReport, machine }) } as const;
  return judgeProbe(replica, false, aServiceSpec().readinessProbe, 86_400_000).event?.type;
}

test('after a restart, failed probes end a replica only once its machine reports', () => {
  expect(verdictOn(noReport.machine)).toBeUndefined();
  expect(verdictOn(nextMachineReport(noReport.machine, silence, 0))).toBeUndefined();
  expect(verdictOn(nextMachineReport(noReport.machine, undefined, 0))).toBe('stop-requested');
});

test('a machine that reports again is neither ending nor part of a widespread silence', () => {
  const silent = nextMachineReport(noReport.machine, silence, 1);
  const back = nextMachineReport(silent, undefined, 2);
  expect(back).toEqual({ ...silence, type: 'back', isEnding: false, isWidespread: false, since: 2 });
  expect(nextMachineReport(back, undefined, 3)).toEqual(back);
  expect(nextMachineReport(back, silence, 4).type).toBe('silent');
});

test('a machine that is back counts as never silent once its replica answers', () => {
  const machine = nextMachineReport(nextMachineReport(noReport.machine, silence, 1), undefined, 2);
  expect(withoutPastSilence({ ...noReport, machine, answers: false }, 'READY').type).toBe('back');
  expect(withoutPastSilence({ ...noReport, machine, answers: true }, 'NOT_READY').type).toBe('back');
  expect(withoutPastSilence({ ...noReport, machine, answers: true }, 'READY').type).toBe('reporting');
  expect(withoutPastSilence({ ...noReport, machine, answers: false }, 'SHUTTING_DOWN').type).toBe('reporting');
});
