import { execFile } from 'node:child_process';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import type { SshTarget } from '../../../src/remote/ssh/index.ts';

const run = promisify(execFile);
const script = new URL('hosts.sh', import.meta.url).pathname;

/** Options of a machine; `hosts.sh` documents units and defaults. */
export interface TestSshHostOptions {
  readonly user?: string;
  /** Files of accepted public keys, in addition to the testbed's own. */
  readonly keys?: readonly string[];
  readonly sudo?: boolean;
  readonly rsync?: boolean;
  /** Installs this Node binary at /usr/local/bin/node. */
  readonly node?: string;
  readonly diskMb?: number;
  readonly cpus?: number;
  readonly memoryMb?: number;
  /** Path of a program that root runs at the first boot. */
  readonly userData?: string;
  readonly maxSessions?: number;
  /** Permits shaping of its link later. */
  readonly cable?: boolean;
  /** For one direction, the same in both. */
  readonly delayMs?: number;
  readonly lossPercent?: number;
  readonly rateMbit?: number;
}

/** Settings of a link for one direction, the same in both. */
export type LinkShape = Pick<TestSshHostOptions, 'delayMs' | 'lossPercent' | 'rateMbit'>;

/** One machine of a testbed. */
export class TestSshHost {
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

  /** The SSH target of the machine. */
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

  /** Power cut: processes die, the disk stays. */
  async kill(): Promise<void> {
    await this.#call('kill', this.name);
  }

  /** Starts it after `kill`. */
  async start(): Promise<void> {
    await this.#call('up', this.name, this.ip);
  }

  async reboot(): Promise<void> {
    await this.#call('reboot', this.name);
  }

  /** Kills it and removes its disk. */
  async down(): Promise<void> {
    await this.#call('down', this.name);
  }

  async pause(): Promise<void> {
    await this.#call('pause', this.name);
  }

  async resume(): Promise<void> {
    await this.#call('resume', this.name);
  }

  /** Drops all packets from and to it. */
  async cut(): Promise<void> {
    await this.#call('cut', this.name);
  }

  async heal(): Promise<void> {
    await this.#call('heal', this.name);
  }

  /** Changes the link of a machine with a cable. */
  async shape({ delayMs = 0, lossPercent = 0, rateMbit = 0 }: LinkShape): Promise<void> {
    await this.#call('shape', this.name, String(delayMs), String(lossPercent), String(rateMbit));
  }

  async firewall(port: number, what: 'drop' | 'reject' | 'open'): Promise<void> {
    await this.#call('firewall', this.name, String(port), what);
  }

  /** Gives it a new host key, as after a reinstallation. */
  async rekey(): Promise<void> {
    await this.#call('rekey', this.name);
  }

  /** Runs a command there as root, not over the network; returns its output. */
  exec(...argv: readonly string[]): Promise<string> {
    return this.#call('exec', this.name, ...argv);
  }
}

/** A network of machines with real sshds, which ends with this process. Needs root. */
export class TestSshHosts {
  /** The private key that every machine accepts. */
  readonly key: string;
  /** Address of this computer in the network, where machines reach its servers. */
  readonly ownIp: string;
  readonly #dir: string;
  #nextHost = 0;

  constructor(dir: string) {
    this.#dir = dir;
    this.key = `${dir}/key`;
    this.ownIp = `10.${basename(dir)}.0.1`;
  }

  /** Creates a machine; resolves when it answers over SSH. */
  async up(name: string, options: TestSshHostOptions = {}): Promise<TestSshHost> {
    const ip = this.nextIp();
    await this.#call('up', name, ip, ...optionWords(options));
    return new TestSshHost(name, ip, options.user ?? 'ubuntu', this.key, (...args) => this.#call(...args));
  }

  /** Returns an address of the network; unless a machine uses it, no program answers there. */
  nextIp(): string {
    this.#nextHost += 1;
    return `10.${basename(this.#dir)}.${1 + Math.floor(this.#nextHost / 250)}.${1 + (this.#nextHost % 250)}`;
  }

  /** Ends all machines and the network. The caller must close connections to them first. */
  async release(): Promise<void> {
    await this.#call('release');
  }

  async #call(...args: readonly string[]): Promise<string> {
    // The script uses only its own environment variables, so other settings can be omitted.
    const { stdout } = await run(script, args, {
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', SVC_HOSTS: this.#dir },
    });
    return stdout;
  }
}

/** Claims a network. Also releases networks whose processes ended without a release. */
export async function claimTestSshHosts(): Promise<TestSshHosts> {
  const { stdout } = await run(script, ['claim', String(process.pid)]);
  return new TestSshHosts(stdout.trim());
}

/** Runs `use` with a new network and always releases it. */
export async function withTestSshHosts<Result>(use: (hosts: TestSshHosts) => Promise<Result>): Promise<Result> {
  const hosts = await claimTestSshHosts();
  try {
    return await use(hosts);
  } finally {
    await hosts.release();
  }
}

function optionWords(options: TestSshHostOptions): readonly string[] {
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
