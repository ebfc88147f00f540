import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seededRandom } from '../../shared/random.ts';
import { isMachineId } from '../provider.ts';
import { allotPorts } from './create-machine.ts';
import type { HostState } from './host.ts';
import { readFacts, whyUnfit } from './host-facts.ts';
import { parseHostReply } from './host-link.ts';
import { freeShare, readShare, shareName, whyNoShare } from './host-share.ts';
import { machineId, machineName, readMachineId, parseMachineRecord, type MachineRecord } from './machine-record.ts';

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

test('a machine record whose name leaves its folder is ignored', () => {
  expect(parseMachineRecord(JSON.stringify(record))).toEqual(record);
  for (const name of ['../../../../tmp/x', '/etc/x', '', '0123456789abcdef/..', '0123456789ABCDEF', '0123456789abcdef0'])
    expect(parseMachineRecord(JSON.stringify({ ...record, name }))).toBeUndefined();
});

test('an id encodes any pool, host and name; other texts are rejected', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), fc.string({ minLength: 1 }), fc.string(), (pool, host, key) => {
      const ref = { pool, host, name: machineName(key) };
      const id = machineId(ref);
      expect(isMachineId(id)).toBe(true);
      expect(id.split('/')).toHaveLength(3);
      expect(readMachineId(id)).toEqual(ref);
    }),
  );
  for (const id of ['0123456789abcdef', 'a/b/c', 'a/b/0123456789abcdef/x', '%/b/0123456789abcdef', ''])
    expect(readMachineId(id)).toBeUndefined();
});

test('a share parses back from its name', () => {
  const amount = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 4_096 }), fc.constantFrom(0.5, 1.5, 7.5));
  fc.assert(
    fc.property(amount, amount, (cpus, memoryGb) => {
      expect(readShare(shareName({ cpus, memoryGb }))).toEqual({ cpus, memoryGb });
    }),
  );
  expect(shareName({ cpus: 4, memoryGb: 16 })).toBe('4 CPUs, 16 GB');
  expect([readShare('m6i.large'), readShare('')]).toEqual([undefined, undefined]);
});

test('reserved shares never exceed the SSH host, and the rest is free', () => {
  const share = fc.record({ cpus: fc.integer({ min: 0, max: 8 }), memoryGb: fc.integer({ min: 0, max: 32 }) });
  fc.assert(
    fc.property(share, fc.array(share, { maxLength: 20 }), (whole, requests) => {
      const given: (typeof whole)[] = [];
      for (const request of requests) if (whyNoShare(request, whole, given) === undefined) given.push(request);
      const sum = (of: 'cpus' | 'memoryGb'): number => given.reduce((total, one) => total + one[of], 0);
      expect(sum('cpus')).toBeLessThanOrEqual(whole.cpus);
      expect(sum('memoryGb')).toBeLessThanOrEqual(whole.memoryGb);
      const left = { cpus: whole.cpus - sum('cpus'), memoryGb: whole.memoryGb - sum('memoryGb') };
      expect(freeShare(whole, given)).toEqual(left);
    }),
  );
});

test('a record parses back, and a truncated record is rejected', () => {
  const text = JSON.stringify(record);
  expect(parseMachineRecord(text)).toEqual(record);
  for (let length = 0; length < text.length; length += 1) expect(parseMachineRecord(text.slice(0, length))).toBeUndefined();
  expect(parseMachineRecord(JSON.stringify({ ...record, isolation: 'magic' }))).toBeUndefined();
});

test('a reply begins after its mark; output of login scripts is ignored', () => {
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
])('an SSH host with %s is unfit', ([change, why]) => {
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

test('on an SSH host with shared ports no two machines get the same port', () => {
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
