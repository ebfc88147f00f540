import { expect, test } from 'vitest';
import { seccompFilter } from './seccomp.ts';

const [x86, i386, arm, other] = [0xc000003e, 0x40000003, 0xc00000b7, 0xc0000016];
const [allowed, notPermitted, noSuchCall] = ['7fff0000', '50001', '50026'];

/** Runs the filter as the kernel does, for a call with its first argument. */
function verdict(architecture: number, call: number, argument = 0): string {
  const program = Buffer.from(seccompFilter(), 'hex');
  const data: Readonly<Record<number, number>> = { 0: call, 4: architecture, 16: argument };
  let accumulator = 0;
  for (let at = 0; ; at += 8) {
    const [code, operand] = [program.readUInt16LE(at), program.readUInt32LE(at + 4)];
    const jump = (isTrue: boolean): void => void (at += 8 * program.readUInt8(at + (isTrue ? 2 : 3)));
    if (code === 0x06) return operand.toString(16);
    else if (code === 0x20) accumulator = data[operand] ?? Number.NaN;
    else if (code === 0x15) jump(accumulator === operand);
    else if (code === 0x35) jump(accumulator >= operand);
    else if (code === 0x45) jump((accumulator & operand) !== 0);
    else throw new Error(`no instruction ${code}`);
  }
}

const newUser = 0x10000000;
const thread = 0x3d0f00;

test.for<readonly [what: string, architecture: number, call: number, argument: number, verdict: string]>([
  ['read on x86_64', x86, 0, 0, allowed],
  ['read on aarch64', arm, 63, 0, allowed],
  ['the first refused call', x86, 163, 0, notPermitted],
  ['unshare on x86_64', x86, 272, 0, notPermitted],
  ['unshare of a 32-bit program', i386, 310, 0, notPermitted],
  ['unshare on aarch64', arm, 97, 0, notPermitted],
  ['the last refused call', arm, 282, 0, notPermitted],
  ['bpf on aarch64', arm, 280, 0, notPermitted],
  ['a new thread', x86, 56, thread, allowed],
  ['a new process in a user namespace', x86, 56, newUser + 17, notPermitted],
  ['the same on aarch64', arm, 220, newUser + 17, notPermitted],
  ['a new process on aarch64', arm, 220, 17, allowed],
  ['a TCP socket', x86, 41, 2, allowed],
  ['a VSOCK socket', x86, 41, 40, notPermitted],
  ['a VSOCK socket of a 32-bit program', i386, 359, 40, notPermitted],
  ['a VSOCK socket on aarch64', arm, 198, 40, notPermitted],
  ['bind with descriptor 40', x86, 49, 40, allowed],
  ['pidfd_getfd', arm, 438, 0, notPermitted],
  ['clone3', x86, 435, 0, noSuchCall],
  ['clone3 on aarch64', arm, 435, 0, noSuchCall],
  ['a call of the x32 ABI', x86, 0x40000000, 0, noSuchCall],
  ['a call of another architecture', other, 0, 0, noSuchCall],
])('the filter judges %s', ([, architecture, call, argument, expected]) => {
  expect(verdict(architecture, call, argument)).toBe(expected);
});
