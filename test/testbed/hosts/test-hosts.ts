import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import type { SshTarget } from '../../../src/remote/ssh/index.ts';

const run = promisify(execFile);
const script = new URL('hosts.sh', import.meta.url).pathname;

/** What a machine is to be like; `hosts.sh` has the units and defaults. */
export interface HostOptions {
  readonly user?: string;
  /** Files with public keys that are let in besides the testbed's own. */
  readonly keys?: readonly string[];
  readonly sudo?: boolean;
  readonly rsync?: boolean;
  /** Has this Node binary at /usr/local/bin/node. */
  readonly node?: string;
  readonly diskMb?: number;
  readonly cpus?: number;
  readonly memoryMb?: number;
  /** File of a program run as root at the first start. */
  readonly userData?: string;
  readonly maxSessions?: number;
  /** Its link is to be shaped later. */
  readonly cable?: boolean;
  /** One way, both ways alike. */
  readonly delayMs?: number;
  readonly lossPercent?: number;
  readonly rateMbit?: number;
}

/** What a link is to be like, one way, both ways alike. */
export type LinkShape = Pick<HostOptions, 'delayMs' | 'lossPercent' | 'rateMbit'>;

/** One machine of a testbed. */
export class TestHost {
  readonly name: string;
  readonly ip: string;
  readonly user: string;
  readonly #call: (...args: readonly string[]) => Promise<string>;
  readonly #key: string;

  constructor(name: string, ip: string, user: string, key: string, call: (...args: readonly string[]) => Promise<string>) {
    this.name = name;
    this.ip = ip;
    this.user = user;
    this.#key = key;
    this.#call = call;
  }

  /** How a remote gets there. */
  target(change: Partial<SshTarget> = {}): SshTarget {
    return {
      name: this.name,
      host: this.ip,
      user: this.user,
      identityFile: this.#key,
      userConfig: false,
      hostKeys: 'pin-first',
      ...change,
    };
  }

  /** Power is cut: processes die, the disk stays. */
  async kill(): Promise<void> {
    await this.#call('kill', this.name);
  }

  /** Back after `kill`. */
  async start(): Promise<void> {
    await this.#call('up', this.name, this.ip);
  }

  async reboot(): Promise<void> {
    await this.#call('reboot', this.name);
  }

  /** Killed, and its disk is gone. */
  async down(): Promise<void> {
    await this.#call('down', this.name);
  }

  async pause(): Promise<void> {
    await this.#call('pause', this.name);
  }

  async resume(): Promise<void> {
    await this.#call('resume', this.name);
  }

  /** What is sent to it or by it vanishes. */
  async cut(): Promise<void> {
    await this.#call('cut', this.name);
  }

  async heal(): Promise<void> {
    await this.#call('heal', this.name);
  }

  /** Of one with a cable. */
  async shape({ delayMs = 0, lossPercent = 0, rateMbit = 0 }: LinkShape): Promise<void> {
    await this.#call('shape', this.name, String(delayMs), String(lossPercent), String(rateMbit));
  }

  async firewall(port: number, what: 'drop' | 'reject' | 'open'): Promise<void> {
    await this.#call('firewall', this.name, String(port), what);
  }

  /** It gets a new host key, as if it had been set up anew. */
  async rekey(): Promise<void> {
    await this.#call('rekey', this.name);
  }

  /** Runs a command there as root, not over the network; gives back what it printed. */
  exec(...argv: readonly string[]): Promise<string> {
    return this.#call('exec', this.name, ...argv);
  }
}

/** A network of machines with real sshds, for the life of this process. Needs root. */
export class TestHosts {
  /** Lets the holder in everywhere. */
  readonly key: string;
  /** Address of this computer in the network, where machines reach what listens there. */
  readonly ownIp: string;
  readonly #dir: string;
  #nextHost = 0;

  constructor(dir: string) {
    this.#dir = dir;
    this.key = `${dir}/key`;
    this.ownIp = `10.${basename(dir)}.0.1`;
  }

  /** Makes a machine; it answers over SSH when this settles. */
  async up(name: string, options: HostOptions = {}): Promise<TestHost> {
    const ip = this.nextIp();
    await this.#call('up', name, ip, ...optionWords(options));
    return new TestHost(name, ip, options.user ?? 'ubuntu', this.key, (...args) => this.#call(...args));
  }

  /** An address of the network; one that is not used for a machine belongs to nobody. */
  nextIp(): string {
    this.#nextHost += 1;
    return `10.${basename(this.#dir)}.${1 + Math.floor(this.#nextHost / 250)}.${1 + (this.#nextHost % 250)}`;
  }

  /** Ends all machines and the network. What still holds connections to them is to be ended before. */
  async release(): Promise<void> {
    await this.#call('release');
  }

  async #call(...args: readonly string[]): Promise<string> {
    // A shell is fine with what is left out; the script's own environment is all it needs.
    const { stdout } = await run(script, args, {
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', SVC_HOSTS: this.#dir },
    });
    return stdout;
  }
}

/** Takes a network. Networks whose processes died without releasing them are released on the way. */
export async function claimTestHosts(): Promise<TestHosts> {
  const { stdout } = await run(script, ['claim', String(process.pid)]);
  return new TestHosts(stdout.trim());
}

/** Runs `use` with a network of its own, and releases it whatever happened. */
export async function withTestHosts<Result>(use: (hosts: TestHosts) => Promise<Result>): Promise<Result> {
  const hosts = await claimTestHosts();
  try {
    return await use(hosts);
  } finally {
    await hosts.release();
  }
}

function optionWords(options: HostOptions): readonly string[] {
  const valued: readonly (readonly [string, string | number | undefined])[] = [
    ['--user', options.user],
    ['--node', options.node],
    ['--disk', options.diskMb],
    ['--cpus', options.cpus],
    ['--mem', options.memoryMb],
    ['--user-data', options.userData],
    ['--max-sessions', options.maxSessions],
    ['--delay', options.delayMs],
    ['--loss', options.lossPercent],
    ['--rate', options.rateMbit],
  ];
  return [
    ...valued.flatMap(([word, value]) => (value === undefined ? [] : [word, String(value)])),
    ...(options.keys ?? []).flatMap((key) => ['--key', key]),
    ...(options.sudo === false ? ['--no-sudo'] : []),
    ...(options.rsync === false ? ['--no-rsync'] : []),
    ...(options.cable === true ? ['--cable'] : []),
  ];
}
