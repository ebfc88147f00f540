/** `AUDIT_ARCH_…` of linux/audit.h: x86_64, i386 (32-bit programs on x86_64), aarch64. */
const architectures = [0xc000003e, 0x40000003, 0xc00000b7] as const;

/** Numbers of a call on these architectures; null: it does not exist there. */
type Numbers = readonly [x86_64: number | null, i386: number | null, aarch64: number | null];

/**
 * Calls that Docker's default profile refuses to a program without capabilities, from unistd_64.h, unistd_32.h and
 * asm-generic/unistd.h. Not among them: calls for memory of several NUMA nodes, which model servers use, and old calls that
 * today's kernels lack.
 */
const refused: Readonly<Record<string, Numbers>> = {
  acct: [163, 51, 89],
  add_key: [248, 286, 217],
  bpf: [321, 357, 280],
  delete_module: [176, 129, 106],
  fanotify_init: [300, 338, 262],
  finit_module: [313, 350, 273],
  fsconfig: [431, 431, 431],
  fsmount: [432, 432, 432],
  fsopen: [430, 430, 430],
  fspick: [433, 433, 433],
  init_module: [175, 128, 105],
  io_uring_enter: [426, 426, 426],
  io_uring_register: [427, 427, 427],
  io_uring_setup: [425, 425, 425],
  ioperm: [173, 101, null],
  iopl: [172, 110, null],
  kcmp: [312, 349, 272],
  kexec_file_load: [320, null, 294],
  kexec_load: [246, 283, 104],
  keyctl: [250, 288, 219],
  mount: [165, 21, 40],
  mount_setattr: [442, 442, 442],
  move_mount: [429, 429, 429],
  open_by_handle_at: [304, 342, 265],
  open_tree: [428, 428, 428],
  open_tree_attr: [467, 467, 467],
  perf_event_open: [298, 336, 241],
  pidfd_getfd: [438, 438, 438],
  pivot_root: [155, 217, 41],
  quotactl: [179, 131, 60],
  quotactl_fd: [443, 443, 443],
  reboot: [169, 88, 142],
  request_key: [249, 287, 218],
  setns: [308, 346, 268],
  swapoff: [168, 115, 225],
  swapon: [167, 87, 224],
  syslog: [103, 103, 116],
  umount: [null, 22, null],
  umount2: [166, 52, 39],
  unshare: [272, 310, 97],
  userfaultfd: [323, 374, 282],
};

/** Sockets to the hypervisor and to other programs of the host, past network namespaces. `socketcall` of i386 is not read. */
const socket: Numbers = [41, 359, 198];
const vsock = 40;

const clone: Numbers = [56, 120, 220];
const clone3 = 435;
/** All `CLONE_NEW…` of linux/sched.h but for time. */
const newNamespaces = 0x7e020000;
/** Numbers from here on are of the x32 ABI, a second door to the same calls. */
const firstOfX32 = 0x40000000;

/** Offsets in `struct seccomp_data`, bytes; of the first argument the lower half. */
const [numberAt, architectureAt, argumentAt] = [0, 4, 16];

const [load, jumpIfEqual, jumpIfAtLeast, jumpIfAnyBit, result] = [0x20, 0x15, 0x35, 0x45, 0x06];
const allow = 0x7fff0000;
const [notPermitted, noSuchCall] = [0x00050001, 0x00050026];

/** An instruction of classic BPF: code, jumps if true and if false, operand. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

/** Jumps count from the next instruction. */
const at = (position: number, target: number): number => target - position - 1;

/** For one architecture, by its index. */
function block(index: 0 | 1 | 2): readonly Instruction[] {
  const numbers = Object.values(refused).flatMap((row) => row[index] ?? []);
  // After the comparisons come three of `clone`, three of `socket`, and the results: allowed, refused, missing.
  const length = numbers.length + 3 + 6 + 3;
  const [permitted, denied, missing] = [length - 3, length - 2, length - 1];
  const compared = numbers.map((number, place): Instruction => [jumpIfEqual, at(place + 3, denied), 0, number]);
  const next = compared.length + 3;
  return [
    [load, 0, 0, numberAt],
    // glibc then uses `clone`, whose flags a filter can read.
    [jumpIfEqual, at(1, missing), 0, clone3],
    [jumpIfAtLeast, index === 0 ? at(2, missing) : 0, 0, firstOfX32],
    ...compared,
    [jumpIfEqual, 0, at(next, next + 3), clone[index] ?? 0],
    [load, 0, 0, argumentAt],
    [jumpIfAnyBit, at(next + 2, denied), at(next + 2, permitted), newNamespaces],
    [jumpIfEqual, 0, at(next + 3, permitted), socket[index] ?? 0],
    [load, 0, 0, argumentAt],
    [jumpIfEqual, at(next + 5, denied), at(next + 5, permitted), vsock],
    [result, 0, 0, allow],
    [result, 0, 0, notPermitted],
    [result, 0, 0, noSuchCall],
  ];
}

/**
 * A seccomp filter as `struct sock_filter[]`, in hex digits: refuses calls that a container's program may not use either,
 * with EPERM. `clone3` and calls of other architectures get ENOSYS. For x86_64 with its 32-bit programs, and aarch64.
 */
export function seccompFilter(): string {
  const blocks = ([0, 1, 2] as const).map(block);
  const starts = blocks.map((_, index) => blocks.slice(0, index).reduce((sum, { length }) => sum + length, 0));
  const choices = architectures.map((value, index): Instruction => [
    jumpIfEqual,
    architectures.length - index + (starts[index] ?? 0),
    0,
    value,
  ]);
  const program: readonly Instruction[] = [[load, 0, 0, architectureAt], ...choices, [result, 0, 0, noSuchCall], ...blocks.flat()];
  const bytes = Buffer.alloc(program.length * 8);
  for (const [place, [code, ifTrue, ifFalse, operand]] of program.entries()) {
    bytes.writeUInt16LE(code, place * 8);
    bytes.writeUInt8(ifTrue, place * 8 + 2);
    bytes.writeUInt8(ifFalse, place * 8 + 3);
    bytes.writeUInt32LE(operand, place * 8 + 4);
  }
  return bytes.toString('hex');
}
