import { SvcError } from '../../shared/errors.ts';
import { shellCommand, shellQuote } from '../shell-quote.ts';

/** A command to run in a session. */
export interface SessionCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /**
   * `bytes`: it gets so many bytes of the data after the script, and ends with its group when the connection ends.
   * `stream`: it gets all of that data. `detached`: it gets none and continues on its own. `text`: it gets this text
   * and no watcher; the data after the script stays untouched for another script.
   */
  readonly input:
    | { readonly kind: 'bytes'; readonly bytes: number }
    | { readonly kind: 'stream' }
    | { readonly kind: 'detached' }
    | { readonly kind: 'text'; readonly text: string };
}

/**
 * The command line for ssh: it reads a number of lines from its input and runs them. It is constant, so process lists
 * show no arguments or variables of svc. A user's login shell sees only a quoted word without special characters.
 */
export const bootCommand =
  `exec /bin/sh -c 's=; nl=$(printf "\\nx"); nl=\${nl%x}; IFS= read -r n || exit 1; ` +
  `while [ "$n" -gt 0 ]; do IFS= read -r l || exit 1; s="$s$l$nl"; n=$((n-1)); done; eval "$s"'`;

/** As `bootCommand`, for one script after another until the input ends. Only for `text` input. */
export const repeatingBootCommand: readonly string[] = [
  '/bin/sh',
  '-c',
  `nl=$(printf "\\nx"); nl=\${nl%x}; while IFS= read -r n; do s=; ` +
    `while [ "$n" -gt 0 ]; do IFS= read -r l || exit 1; s="$s$l$nl"; n=$((n-1)); done; ( eval "$s" ) < /dev/null; done`,
];

/** Read-only variables that a shell sets itself. */
const shellOwned = new Set(['BASHOPTS', 'BASH_VERSINFO', 'EUID', 'PPID', 'SHELLOPTS', 'UID']);

const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** With a process group of its own, the command survives this script's group and can be killed with its children. */
const ownSession = `svc_setsid=$(command -v setsid) || { echo 'There is no setsid on this machine (package util-linux).' >&2; exit 127; }
set -- "$svc_setsid" "$@"`;

/** Printed on both outputs before the command's first byte, because a user's shell may print text before it. */
export const startMark = (token: string): string => `${token}+\n`;

/** Printed on both outputs after the command's end, before its exit code and `;\n`. */
export const endMark = (token: string): string => `${token}=`;

/**
 * For `bootCommand`: the number of lines, then the lines. `token` must be unknown to the command. The marks distinguish
 * the command's end from the connection's, and its exit code from ssh's.
 */
export function sessionScript(command: SessionCommand, token: string): string {
  const script = [
    `set -- ${shellCommand(command.argv)}`,
    // Before the exports: after them, every exported variable is the command's.
    `svc_say() { printf '%s%s' ${shellQuote(token)} "$1"; printf '%s%s' ${shellQuote(token)} "$1" >&2; }`,
    'svc_say "+$nl"',
    ...body(command),
    '',
  ].join('\n');
  return `${script.split('\n').length - 1}\n${script}`;
}

function body({ input, env, cwd }: SessionCommand): readonly string[] {
  const enter = [...(cwd === undefined ? [] : [`cd ${shellQuote(cwd)} || exit 127`]), ...exports(env)].join('\n');
  if (input.kind === 'stream') return [`( ${enter}\nexec "$@" )`, 'svc_code=$?', say];
  if (input.kind === 'text') return [`printf %s ${shellQuote(input.text)} | ( ${enter}\nexec "$@" )`, 'svc_code=$?', say];
  if (input.kind === 'detached') {
    return [
      `( ${ownSession}\n${enter}\ncommand -v "$2" > /dev/null || { echo "$2: not found" >&2; exit 127; } )`,
      'svc_code=$?',
      `[ "$svc_code" != 0 ] || ( ${ownSession}\n${enter}\nexec "$@" ) < /dev/null > /dev/null 2>&1 &`,
      say,
    ];
  }
  const feed = input.bytes === 0 ? '' : `head -c ${input.bytes} <&3`;
  return [
    'exec 3<&0',
    // Not ignored: child processes would inherit that. This shell must survive to report the result.
    'trap : TERM',
    // The feeder stays as a watcher. Its input ends with the connection; then it ends this process group.
    `{ ${feed}\nexec > /dev/null 2>&1\ncat <&3\nkill -TERM 0; } | {`,
    // A command that has just started has no group yet, only a pid.
    `trap 'kill -KILL -"$!" || kill -KILL "$!"; exit 1' TERM`,
    // Without a redirection, a background command gets nothing on descriptor 0.
    `exec 3<&- 4<&0`,
    `( ${ownSession}\n${enter}\nexec "$@" 4<&- ) <&4 &`,
    'svc_pid=$!',
    '{ wait "$svc_pid"; } 2> /dev/null',
    'svc_code=$?',
    `trap '' TERM`,
    say,
    // Also ends the watcher: the client may have vanished silently, and nothing else would end it.
    'kill -TERM 0',
    '}',
  ];
}

const say = 'svc_say "=$svc_code;$nl"';

function exports(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env)
    .filter(([name]) => !shellOwned.has(name))
    .map(([name, value]) => {
      if (!variablePattern.test(name)) throw new SvcError('SVC_INVALID_TASK', `A variable cannot be called '${name}'.`);
      return `export ${name}=${shellQuote(value)}`;
    });
}
