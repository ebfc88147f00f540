import { commands } from '../../src/cli/command-table.ts';
import { longName, type ArgumentSpec, type Command, type OptionSpec } from '../../src/cli/command.ts';
import { jobExitCodes, unknownJobCode } from '../../src/cli/commands/jobs.ts';
import { exitCodes } from '../../src/shared/error-codes.ts';
import { page, table } from './markdown.ts';

/** docs/reference/cli.md */
export function renderCliPage(): string {
  const visible = commands.filter(({ hidden }) => hidden !== true);
  return page(
    '# Commands',
    'What `--help` of each command shows, on one page. From `src/cli/tables/`.',
    table(
      ['Command', 'What it does'],
      visible.map((command) => [`[\`${nameOf(command)}\`](#${nameOf(command).replaceAll(' ', '-')})`, command.summary]),
    ),
    '## Manners',
    [
      'Results go to standard output, everything else to standard error. With `--json` the result, and an error too, is one JSON document on standard output (`serve events --json` and `serve status --watch --json`: one on each line).',
      'Into a pipe nothing is coloured, cut or asked. What destroys something asks on a terminal and needs `--yes` elsewhere. `NO_COLOR` turns colours off; `SVC_DEBUG=1` shows the stack of an error; `SVC_HOME` is the folder that holds everything, by default `~/.svc`.',
      'Ctrl-C ends the command, never what it has begun. A question that is answered with no ends it with 4, one that is answered with Ctrl-C with 130. Names may be patterns (`*`, `?`) where several can be given.',
    ].join('\n\n'),
    '## Exit codes',
    table(
      ['Code', 'Meaning'],
      [
        ['0', 'done'],
        ...Object.entries(exitCodes).map(([kind, code]) => [String(code), `an error of the kind ${kind}; see [errors](errors.md)`]),
        ...jobRows(),
        ['130', 'interrupted with Ctrl-C'],
      ],
    ),
    ...visible.map(commandSection),
  );
}

function jobRows(): readonly (readonly [string, string])[] {
  const states = Map.groupBy(Object.entries(jobExitCodes), ([, code]) => code);
  const rows = [...states]
    .filter(([code]) => code !== 0)
    .map(([code, entries]) => [code, entries.map(([state]) => state).join(', ')] as const);
  return [
    ...rows.map(([code, names]) => [String(code), `\`launch\`, \`exec\` and \`logs\`: the job is ${names}`] as const),
    [String(unknownJobCode), 'the same: the cluster is gone'],
  ];
}

function nameOf({ path }: Command): string {
  return ['svc', ...path].join(' ');
}

function commandSection(command: Command): string {
  const heading = `## ${nameOf(command)}`;
  const text = command.description === undefined ? `${command.summary}.` : `${command.summary}. ${command.description}`;
  const args = Object.values(command.arguments);
  const options = Object.entries(command.options);
  const usage = [nameOf(command), ...(options.length === 0 ? [] : ['[options]']), ...args.map(argumentTerm)].join(' ');
  return [
    heading,
    text,
    ...(command.destructive === true ? [`It asks before it acts; without a terminal it needs \`--yes\`.`] : []),
    `\`\`\`\n${usage}\n\`\`\``,
    ...(args.length === 0
      ? []
      : [
          table(
            ['Argument', 'What it is'],
            args.map(({ label, summary }) => [`\`${label}\``, summary]),
          ),
        ]),
    ...(options.length === 0
      ? []
      : [
          table(
            ['Option', 'What it does'],
            options.map(([key, option]) => [optionTerm(key, option), summaryOf(option)]),
          ),
        ]),
    `\`\`\`sh\n${command.examples.join('\n')}\n\`\`\``,
  ].join('\n\n');
}

function argumentTerm({ kind, label }: ArgumentSpec): string {
  if (kind === 'one') return label;
  return kind === 'optional' ? `[${label}]` : `[${label}...]`;
}

function optionTerm(key: string, option: OptionSpec): string {
  const name = longName(key);
  const value = 'label' in option ? (option.kind === 'optionalValue' ? ` [${option.label}]` : ` ${option.label}`) : '';
  const forms = [
    ...(option.short === undefined ? [] : [`-${option.short}`]),
    `--${name}${value}`,
    ...(option.kind === 'switch' ? [`--no-${name}`] : []),
  ];
  return `\`${forms.join(', ')}\``;
}

function summaryOf(option: OptionSpec): string {
  return option.kind === 'switch' ? `${option.summary}; \`no\`: ${option.offSummary}` : option.summary;
}
