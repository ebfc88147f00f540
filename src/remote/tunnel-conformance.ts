import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import { SvcError } from '../shared/errors.ts';
import { Tunnels, type TunnelCarrier } from './tunnels.ts';

/** A machine, and the processes of one home that work on it. */
export interface TunnelWorld {
  /** The machine's tunnels, as carried by a process that has just started. */
  readonly carrier: () => TunnelCarrier;
  /** A port whose program returns what it receives. */
  readonly echoPort: number;
  readonly deadPort: number;
  /** Kills the processes that hold the sockets. */
  readonly killHolders: () => Promise<void>;
  /** From now on the machine does not answer. */
  readonly stopMachine: () => Promise<void>;
  /** Matches the error of a machine that does not answer. */
  readonly machineName: RegExp;
}

interface TunnelCase {
  readonly name: string;
  readonly run: (world: TunnelWorld) => Promise<void>;
}

/** Behaviour of the tunnels to one machine. Each case gets a home and a machine of its own. */
export const tunnelCases: readonly TunnelCase[] = [
  {
    name: 'a destination has one socket, of mode 0600, which leads there',
    async run({ carrier, echoPort }) {
      const tunnels = new Tunnels(carrier());
      const socket = await tunnels.open(echoPort);
      strictEqual(await tunnels.open(echoPort), socket);
      notStrictEqual(await tunnels.open('/run/other.sock'), socket);
      strictEqual(statSync(socket).mode & 0o777, 0o600);
      strictEqual(await answerOf(socket), 'hello');
    },
  },
  {
    name: 'processes that open tunnels at once share them and lose none',
    async run({ carrier, echoPort, deadPort }) {
      const processes = [carrier(), carrier(), carrier()].map((one) => new Tunnels(one));
      const opened = await Promise.all(processes.flatMap((tunnels) => [tunnels.open(echoPort), tunnels.open(deadPort)]));
      const sockets = new Set(opened);
      strictEqual(sockets.size, 2);
      deepStrictEqual(recordedSockets(carrier()), [...sockets].toSorted());
      strictEqual(await answerOf(opened[0] ?? ''), 'hello');
    },
  },
  {
    name: 'a tunnel dropped from the record by a concurrent write is recorded again',
    async run({ carrier, echoPort, deadPort }) {
      const other = carrier();
      const late = carrier();
      const { records, name } = late;
      const carry = late.carry.bind(late);
      const otherTunnel = { socket: records.socket(name, deadPort), to: late.endOf(deadPort) };
      let isOverwritten = false;
      late.carry = async (signal) => {
        if (!isOverwritten) records.write(name, { tunnels: [otherTunnel], route: late.newRoute });
        isOverwritten = true;
        await carry(signal);
      };
      const socket = await new Tunnels(late).open(echoPort);
      strictEqual(await answerOf(socket), 'hello');
      deepStrictEqual(recordedSockets(other), [socket, otherTunnel.socket].toSorted());
    },
  },
  {
    name: 'a later process keeps a recorded tunnel after its holder was killed',
    async run({ carrier, echoPort, killHolders }) {
      const socket = await new Tunnels(carrier()).open(echoPort);
      await killHolders();
      new Tunnels(carrier()).keep();
      await until(async () => (await answerOf(socket)) === 'hello', 'the tunnel to be restored');
    },
  },
  {
    name: 'a closed tunnel leaves no file, and no process reopens it',
    async run({ carrier, echoPort, killHolders }) {
      const other = carrier();
      const [closing, keeping] = [new Tunnels(carrier()), new Tunnels(other)];
      const socket = await closing.open(echoPort);
      await keeping.open('/run/other.sock');
      await closing.close();
      deepStrictEqual(filesOf(other, [socket, other.records.socket(other.name, '/run/other.sock')]), []);
      keeping.keep();
      await killHolders();
      await other.carry();
      strictEqual(other.records.read(other.name), undefined);
      strictEqual(await answerOf(socket), undefined);
      await closing.close();
    },
  },
  {
    name: 'an invalid record counts as absent and is replaced',
    async run({ carrier, echoPort }) {
      const one = carrier();
      const file = join(one.records.dir, one.name);
      mkdirSync(one.records.dir, { recursive: true });
      for (const text of ['', '{"ways":[', '{"ways":{}}', '[]']) {
        writeFileSync(file, text);
        strictEqual(one.records.read(one.name), undefined, text);
      }
      const tunnels = new Tunnels(one);
      strictEqual(await answerOf(await tunnels.open(echoPort)), 'hello');
      writeFileSync(file, 'cut');
      await tunnels.close();
      ok(!existsSync(file), 'the invalid record stayed');
    },
  },
  {
    name: 'a removed socket file is created again',
    async run({ carrier, echoPort }) {
      const tunnels = new Tunnels(carrier());
      const socket = await tunnels.open(echoPort);
      rmSync(socket);
      strictEqual(await tunnels.open(echoPort), socket);
      strictEqual(await answerOf(socket), 'hello');
    },
  },
  {
    name: 'a connection to a port without a program ends without a byte',
    async run({ carrier, deadPort }) {
      strictEqual(await answerOf(await new Tunnels(carrier()).open(deadPort)), '');
    },
  },
  {
    name: 'a machine that does not answer is named by an error, or connections end without a byte',
    async run({ carrier, echoPort, stopMachine, machineName }) {
      await stopMachine();
      const opened = await new Tunnels(carrier()).open(echoPort).catch((error: unknown) => error);
      if (typeof opened === 'string') return strictEqual(await answerOf(opened), '');
      ok(opened instanceof SvcError, String(opened));
      return match(opened.message, machineName);
    },
  },
];

function recordedSockets({ records, name }: TunnelCarrier): readonly string[] {
  return (records.read(name)?.tunnels ?? []).map(({ socket }) => socket).toSorted();
}

function filesOf({ records, name }: TunnelCarrier, sockets: readonly string[]): readonly string[] {
  return [join(records.dir, name), ...sockets].filter((path) => existsSync(path));
}

/** The reply to `hello`; undefined when no process listens on the socket. */
function answerOf(socket: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = '';
    let isConnected = false;
    const client = connect({ path: socket }, () => {
      isConnected = true;
      client.write('hello');
    });
    client.on('data', (bytes: Buffer) => {
      answer += bytes.toString('utf8');
      if (answer === 'hello') client.destroy();
    });
    client.on('error', () => undefined);
    client.once('close', () => resolve(isConnected ? answer : undefined));
  });
}

/** On a loaded machine, replacing a killed ssh or forwarder takes seconds; on others no case waits that long. */
const patienceMs = 90_000;

async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs;
  while (!(await isSo())) {
    if (systemClock.monotonic() > deadline) throw new Error(`waited in vain for ${what}`);
    await systemClock.sleep(20);
  }
}
