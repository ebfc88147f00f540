import { SvcError } from '../../shared/errors.ts';
import { shellCommand, shellQuote } from '../shell-quote.ts';

/** What is to be run in one session. */
export interface SessionCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /**
   * `bytes`: the command gets so many bytes of what follows the script, and is ended with its group when the connection ends.
   * `stream`: it gets all that follows. `detached`: it gets nothing and goes on by itself. `text`: it gets this, nothing that follows is touched, so
   * that another script may, and nobody watches it.
   */
  readonly input:
    | { readonly kind: 'bytes'; readonly bytes: number }
    | { readonly kind: 'stream' }
    | { readonly kind: 'detached' }
    | { readonly kind: 'text'; readonly text: string };
}

/**
 * The command that ssh is given: always the same, so that neither arguments nor variables of ours are seen in a list of processes. It reads a
 * number of lines from its input and runs them. The user's shell, whichever that is, only sees a word in single quotes without anything special.
 */
export const bootCommand =
  `exec /bin/sh -c 's=; nl=$(printf "\\nx"); nl=\${nl%x}; IFS= read -r n || exit 1; ` +
  `while [ "$n" -gt 0 ]; do IFS= read -r l || exit 1; s="$s$l$nl"; n=$((n-1)); done; eval "$s"'`;

/** As `bootCommand`, for a shell that runs one script after another until its input ends. For `text` as input alone. */
export const repeatingBootCommand: readonly string[] = [
  '/bin/sh',
  '-c',
  `nl=$(printf "\\nx"); nl=\${nl%x}; while IFS= read -r n; do s=; ` +
    `while [ "$n" -gt 0 ]; do IFS= read -r l || exit 1; s="$s$l$nl"; n=$((n-1)); done; ( eval "$s" ) < /dev/null; done`,
];

/** Variables that a shell sets itself and lets nobody set. */
const shellOwned = new Set(['BASHOPTS', 'BASH_VERSINFO', 'EUID', 'PPID', 'SHELLOPTS', 'UID']);

const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A session and a group of its own for the command: what it starts can be ended with it, and it does not end with ours. */
const ownSession = `svc_setsid=$(command -v setsid) || { echo 'There is no setsid on this machine (package util-linux).' >&2; exit 127; }
set -- "$svc_setsid" "$@"`;

/** Said on both outputs before the command's own first byte: a user's shell may print things of its own before. */
export const startMark = (token: string): string => `${token}+\n`;

/** Begins what is said on both outputs after the command's end; its exit code and `;\n` follow. */
export const endMark = (token: string): string => `${token}=`;

/**
 * What is sent to `bootCommand`: the number of lines and the lines. `token` must be one that the command cannot know. The marks tell the end of the
 * command from the end of the connection, and an exit code of the command from one of ssh.
 */
export function sessionScript(command: SessionCommand, token: string): string {
  const script = [
    `set -- ${shellCommand(command.argv)}`,
    // Of the session's own; from here on every exported variable is the command's.
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
    // Not ignored, as those below would do so too: this shell says last how it all ended.
    'trap : TERM',
    // The feeder stays on as a watchman: the end of what comes over the connection is the end of the connection, and ends our own group.
    `{ ${feed}\nexec > /dev/null 2>&1\ncat <&3\nkill -TERM 0; } | {`,
    // One that has just begun has no group yet, and is not known by another name.
    `trap 'kill -KILL -"$!" || kill -KILL "$!"; exit 1' TERM`,
    // A background command gets nothing on descriptor 0 unless it is given another.
    `exec 3<&- 4<&0`,
    `( ${ownSession}\n${enter}\nexec "$@" 4<&- ) <&4 &`,
    'svc_pid=$!',
    '{ wait "$svc_pid"; } 2> /dev/null',
    'svc_code=$?',
    `trap '' TERM`,
    say,
    // The watchman goes as well: whoever was told may have gone without a word, and nobody would end it.
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
