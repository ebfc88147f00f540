import { SvcError } from '../../shared/errors.ts';
import { shellCommand, shellQuote } from '../shell-quote.ts';

/** A command to run in one session. */
export interface SessionCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /**
   * `bytes`: the command gets that many bytes of the data after the script; it is ended with its group when the
   * connection ends. `stream`: it gets all data after the script. `detached`: it gets none and continues on its own.
   * `text`: it gets this text and no watcher. The data after the script stays untouched, so that another script may
   * follow.
   */
  readonly input:
    | { readonly kind: 'bytes'; readonly bytes: number }
    | { readonly kind: 'stream' }
    | { readonly kind: 'detached' }
    | { readonly kind: 'text'; readonly text: string };
}

/**
 * The command line for ssh. It is always the same, so that process lists show neither arguments nor variables of svc.
 * It reads a number of lines from its input and runs them. Any user's shell sees only a word in single quotes without
 * special characters.
 */
export const bootCommand =
  `exec /bin/sh -c 's=; nl=$(printf "\\nx"); nl=\${nl%x}; IFS= read -r n || exit 1; ` +
  `while [ "$n" -gt 0 ]; do IFS= read -r l || exit 1; s="$s$l$nl"; n=$((n-1)); done; eval "$s"'`;

/** Like `bootCommand`, for a shell that runs one script after another until its input ends. Only for `text` input. */
export const repeatingBootCommand: readonly string[] = [
  '/bin/sh',
  '-c',
  `nl=$(printf "\\nx"); nl=\${nl%x}; while IFS= read -r n; do s=; ` +
    `while [ "$n" -gt 0 ]; do IFS= read -r l || exit 1; s="$s$l$nl"; n=$((n-1)); done; ( eval "$s" ) < /dev/null; done`,
];

/** Variables that a shell sets itself and that cannot be assigned. */
const shellOwned = new Set(['BASHOPTS', 'BASH_VERSINFO', 'EUID', 'PPID', 'SHELLOPTS', 'UID']);

const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Gives the command a session and a process group of its own. Its child processes can be killed with it, and it
 * survives the end of this script's group.
 */
const ownSession = `svc_setsid=$(command -v setsid) || { echo 'There is no setsid on this machine (package util-linux).' >&2; exit 127; }
set -- "$svc_setsid" "$@"`;

/** Printed on both outputs before the command's first byte: a user's shell may print its own text before. */
export const startMark = (token: string): string => `${token}+\n`;

/** Starts the text printed on both outputs after the command's end; its exit code and `;\n` follow. */
export const endMark = (token: string): string => `${token}=`;

/**
 * The text for `bootCommand`: the number of lines, then the lines. `token` must be unknown to the command. The marks
 * distinguish the command's end from the connection's end, and the command's exit code from ssh's.
 */
export function sessionScript(command: SessionCommand, token: string): string {
  const script = [
    `set -- ${shellCommand(command.argv)}`,
    // Defined before the exports: from there on, every exported variable belongs to the command.
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
    // A handler, not an ignored signal: child processes would inherit the latter. This shell must survive to report the
    // result.
    'trap : TERM',
    // The feeder stays as a watcher: the end of its input means the end of the connection, and then it ends this
    // process group.
    `{ ${feed}\nexec > /dev/null 2>&1\ncat <&3\nkill -TERM 0; } | {`,
    // A command that has just started has no group yet and is known only by its pid.
    `trap 'kill -KILL -"$!" || kill -KILL "$!"; exit 1' TERM`,
    // A background command gets nothing on descriptor 0 unless it is redirected explicitly.
    `exec 3<&- 4<&0`,
    `( ${ownSession}\n${enter}\nexec "$@" 4<&- ) <&4 &`,
    'svc_pid=$!',
    '{ wait "$svc_pid"; } 2> /dev/null',
    'svc_code=$?',
    `trap '' TERM`,
    say,
    // Ends the watcher as well: the client may have vanished silently after the report, and nothing else would end it.
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
