import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seededRandom } from '../../shared/random.ts';
import { isMachineId } from '../provider.ts';
import { allotPorts } from './allotment.ts';
import type { HostState } from './host.ts';
import { readFacts, whyUnfit } from './host-facts.ts';
import { parseHostReply } from './host-reply.ts';
import { freeShare, readShare, shareName, whyNoShare } from './host-share.ts';
import { machineId, machineName, readMachineId } from './machine-id.ts';
import { parseMachineRecord, type MachineRecord } from './machine-record.ts';

const record: MachineRecord = {
  name: '0123456789abcdef',
  key: 'key',
  pool: 'lab',
  host: 'h1',
  tags: {},
  isolation: 'none',
  cookie: 'c',
  gpus: null,
  ports: [8080],
  ownPort: null,
  cpus: 0,
  memoryGb: 0,
  dir: '/home/u/.svc/machines/0123456789abcdef',
  socket: '/home/u/.svc/run/0123456789abcdef.sock',
  bootId: 'b',
  createdAt: 1,
};

test('a host that tells of a machine whose name leads out of a folder tells of none', () => {
  expect(parseMachineRecord(JSON.stringify(record))).toEqual(record);
  for (const name of ['../../../../tmp/x', '/etc/x', '', '0123456789abcdef/..', '0123456789ABCDEF', '0123456789abcdef0'])
    expect(parseMachineRecord(JSON.stringify({ ...record, name }))).toBeUndefined();
});

test('an id tells pool, host and name whatever these are called, and nothing else is taken for one', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), fc.string({ minLength: 1 }), fc.string(), (pool, host, key) => {
      const place = { pool, host, name: machineName(key) };
      const id = machineId(place);
      expect(isMachineId(id)).toBe(true);
      expect(id.split('/')).toHaveLength(3);
      expect(readMachineId(id)).toEqual(place);
    }),
  );
  for (const id of ['0123456789abcdef', 'a/b/c', 'a/b/0123456789abcdef/x', '%/b/0123456789abcdef', ''])
    expect(readMachineId(id)).toBeUndefined();
});

test('a share is read from its own name', () => {
  const amount = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 4_096 }), fc.constantFrom(0.5, 1.5, 7.5));
  fc.assert(
    fc.property(amount, amount, (cpus, memoryGb) => {
      expect(readShare(shareName({ cpus, memoryGb }))).toEqual({ cpus, memoryGb });
    }),
  );
  expect(shareName({ cpus: 4, memoryGb: 16 })).toBe('4 CPUs, 16 GB');
  expect([readShare('m6i.large'), readShare('')]).toEqual([undefined, undefined]);
});

test('what is set aside is never given twice, and never more than there is', () => {
  const share = fc.record({ cpus: fc.integer({ min: 0, max: 8 }), memoryGb: fc.integer({ min: 0, max: 32 }) });
  fc.assert(
    fc.property(share, fc.array(share, { maxLength: 20 }), (whole, wishes) => {
      const given: (typeof whole)[] = [];
      for (const wish of wishes) if (whyNoShare(wish, whole, given) === undefined) given.push(wish);
      const sum = (of: 'cpus' | 'memoryGb'): number => given.reduce((total, one) => total + one[of], 0);
      expect(sum('cpus')).toBeLessThanOrEqual(whole.cpus);
      expect(sum('memoryGb')).toBeLessThanOrEqual(whole.memoryGb);
      const left = { cpus: whole.cpus - sum('cpus'), memoryGb: whole.memoryGb - sum('memoryGb') };
      expect(freeShare(whole, given)).toEqual(left);
    }),
  );
});

test('a record is read as it was written, and half a record is none', () => {
  const text = JSON.stringify(record);
  expect(parseMachineRecord(text)).toEqual(record);
  for (let length = 0; length < text.length; length += 1) expect(parseMachineRecord(text.slice(0, length))).toBeUndefined();
  expect(parseMachineRecord(JSON.stringify({ ...record, isolation: 'magic' }))).toBeUndefined();
});

test('an answer begins after its mark: what login scripts print is no part of it', () => {
  const reply = parseHostReply('Welcome!\nresult=fake\nsvc-host=1\nboot=b\ngpu=0, NVIDIA L4, 23034\ngpu=1, Tesla T4, 15360\nresult=ok\n');
  expect(reply?.get('result')).toEqual(['ok']);
  expect(readFacts(reply ?? new Map()).gpus.map(({ name }) => name)).toEqual(['NVIDIA L4', 'Tesla T4']);
  expect(parseHostReply('Welcome!\n')).toBeUndefined();
});

const fine =
  'system=Linux\narch=x86_64\nlibc=glibc 2.36\nwritable=yes\nfree_kb=10000000\ntools=flock setsid timeout\ndir=/h/.svc/machines\nhome=/h\nuser=u';

test.for<readonly [change: string, why: RegExp]>([
  ['system=Darwin', /it runs Darwin/],
  ['system=', /an unknown system/],
  ['libc=musl', /musl, not glibc/],
  ['libc=unknown', /no glibc/],
  ['libc=glibc 2.27', /glibc is 2\.27, older than 2\.28/],
  ['tools=setsid', /it lacks flock, timeout/],
  ['writable=', /\/h\/\.svc\/machines cannot be written/],
  ['free_kb=51200', /it has 50 MB of disk left/],
])('a host with %s is unfit', ([change, why]) => {
  const [name = ''] = change.split('=');
  const lines = fine.split('\n').map((line) => (line.startsWith(`${name}=`) ? change : line));
  expect(whyUnfit(readFacts(parseHostReply(`svc-host=1\n${fine}\n`) ?? new Map()))).toBeUndefined();
  expect(whyUnfit(readFacts(parseHostReply(`svc-host=1\n${lines.join('\n')}\n`) ?? new Map()))?.why).toMatch(why);
});

const stateWith = (ports: readonly number[]): HostState => ({
  facts: readFacts(new Map()),
  bootId: 'b',
  revision: '0',
  machines: ports.map((port) => ({ ...record, ports: [port] })),
});

test('where machines share the ports of a host, none gets one that another has', () => {
  const random = seededRandom(1);
  expect(allotPorts({ ports: [8080, 9090] }, stateWith([]), 'h1', random)).toEqual({ ports: [8080, 9090], ownPort: null });
  expect(() => allotPorts({ ports: [8080, 9090] }, stateWith([9090]), 'h1', random)).toThrow(
    expect.objectContaining({ refusal: 'capacity', scope: 'zone', message: expect.stringContaining('has port 9090 of the host h1') }),
  );
  const taken = Array.from({ length: 8_999 }, (_, index) => 20_000 + index);
  expect(allotPorts({ ports: [8080], followsPort: true }, stateWith([8080, ...taken]), 'h1', random)).toEqual({
    ports: [28_999],
    ownPort: 28_999,
  });
});
