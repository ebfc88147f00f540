/** How a machine starts the controller after a reboot: a systemd unit of root or of a user, or a line in a crontab. */
export type BootKind = 'system-unit' | 'user-unit' | 'cron';

/** What the choice of a `BootKind` depends on. */
interface BootFacts {
  readonly isRoot: boolean;
  /** Whether systemd runs here, not only its programs. */
  readonly hasSystemd: boolean;
  readonly hasCrontab: boolean;
}

/** systemd if it runs, because it also restarts a crashed controller; otherwise cron; undefined without both. */
export function chooseBoot({ isRoot, hasSystemd, hasCrontab }: BootFacts): BootKind | undefined {
  if (hasSystemd) return isRoot ? 'system-unit' : 'user-unit';
  return hasCrontab ? 'cron' : undefined;
}

/** The program that a boot starts. */
export interface BootProgram {
  /** Name of the unit without `.service`, and the mark of the line in the crontab. */
  readonly name: string;
  /** Absolute path of the `svc` wrapper. */
  readonly svc: string;
  /** Absolute SVC_HOME. */
  readonly home: string;
  readonly controllerLog: string;
  /** All variables of the controller beside those that systemd or cron sets. No secrets: users may read units. */
  readonly env: Readonly<Record<string, string>>;
}

/** Variables that lead to credentials, configuration and programs. */
const passedOn = [
  'PATH',
  'HOME',
  'KUBECONFIG',
  'AWS_PROFILE',
  'AWS_CONFIG_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_EC2_METADATA_DISABLED',
  'AWS_ENDPOINT_URL',
  'AWS_ENDPOINT_URL_EC2',
  'AWS_ENDPOINT_URL_S3',
  'SVC_LOCAL_ISOLATION',
  'SVC_SERVICE_LIMIT',
] as const;

/** Variables that the controller would use and that are, or may contain, a secret. */
const secret = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN', 'SVC_DATABASE'] as const;

/** Splits the variables of a command: those that a boot passes on, and the names of secret ones, which it must not. */
export function bootEnv(valueOf: (name: string) => string | undefined): {
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
} {
  const given = passedOn.flatMap((name): readonly (readonly [string, string])[] => {
    const value = valueOf(name);
    return value === undefined ? [] : [[name, value]];
  });
  return { env: Object.fromEntries(given), secrets: secret.filter((name) => valueOf(name) !== undefined) };
}

/** Whether a unit or a crontab can hold the text: neither has an escape for a line break in every place. */
export function fitsBootEntry({ svc, env, home }: BootProgram): boolean {
  return [svc, home, ...Object.values(env)].every((text) => !/[\n\r\0]/.test(text));
}

/** Cron of Debian ignores a longer line without a word, bytes. */
export const longestCronLine = 998;

/** One word of a unit, quoted; `%` begins a specifier of systemd everywhere. */
const unitWord = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`;

/** A value that systemd reads to the end of its line, without quotes. */
const restOfLine = (text: string): string => text.replaceAll('%', '%%');

/** The line of a unit that names the program; a unit with another one belongs to another copy of svc. */
export function unitStartLine({ svc }: Pick<BootProgram, 'svc'>): string {
  // In arguments, and only there, `$` begins a variable. The shell makes the wrapper an argument.
  return `ExecStart=/bin/sh ${unitWord(svc).replaceAll('$', '$$$$')} controller start --foreground`;
}

/**
 * The text of the systemd unit. systemd runs the controller in the foreground and restarts it after a crash; after
 * `svc controller stop`, which ends it with 0, it stays stopped. Services outlive it (`KillMode`), also when the kernel
 * kills one of them for its memory (`OOMPolicy`).
 */
export function systemdUnit(kind: Exclude<BootKind, 'cron'>, program: BootProgram): string {
  const isSystem = kind === 'system-unit';
  const env = { ...program.env, SVC_HOME: program.home };
  return [
    '# Written by: svc controller install. Removed by: svc controller uninstall.',
    '[Unit]',
    `Description=Controller of svc (${restOfLine(program.home)})`,
    // A deleted SVC_HOME has no services, and the start would fail again and again.
    `ConditionPathIsDirectory=${restOfLine(program.home)}`,
    // The manager of a user does not know this target.
    ...(isSystem ? ['After=network-online.target', 'Wants=network-online.target'] : []),
    '',
    '[Service]',
    ...Object.entries(env).map(([name, value]) => `Environment=${unitWord(`${name}=${value}`)}`),
    unitStartLine(program),
    `StandardOutput=append:${restOfLine(program.controllerLog)}`,
    'StandardError=inherit',
    'Restart=on-failure',
    'RestartSec=10',
    'KillMode=process',
    'OOMPolicy=continue',
    'TasksMax=infinity',
    'LimitNOFILE=1048576',
    '',
    '[Install]',
    `WantedBy=${isSystem ? 'multi-user.target' : 'default.target'}`,
    '',
  ].join('\n');
}

/** Cron turns an unescaped `%` into a line break, also within quotes. */
const cronText = (text: string): string => text.replaceAll('%', String.raw`\%`);

/** The part of the crontab's line that names the program; a line without it belongs to another copy of svc. */
export function cronCommand({ svc }: Pick<BootProgram, 'svc'>, quote: (text: string) => string): string {
  return cronText(`/bin/sh ${quote(svc)} controller start`);
}

/** The line of the crontab. */
export function cronLine(program: BootProgram, quote: (text: string) => string): string {
  const { name, home, controllerLog, env } = program;
  const variables = Object.entries({ ...env, SVC_HOME: home }).map(([key, value]) => `${key}=${quote(value)}`);
  return `@reboot ${cronText(variables.join(' '))} ${cronCommand(program, quote)} >> ${cronText(quote(controllerLog))} 2>&1 # ${name}`;
}

/** A crontab without the line of this name. */
export function withoutCronLine(crontab: string, name: string): string {
  return crontab
    .split('\n')
    .filter((line) => !line.endsWith(` # ${name}`))
    .join('\n');
}

/** A crontab with this line in place of an earlier one of the same name. */
export function withCronLine(crontab: string, name: string, line: string): string {
  const others = withoutCronLine(crontab, name);
  return `${others === '' || others.endsWith('\n') ? others : `${others}\n`}${line}\n`;
}
