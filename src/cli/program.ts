import { Command as Parser, CommanderError, InvalidArgumentError, Option } from 'commander';
import { SvcError } from '../shared/errors.ts';
import { longName, type Command, type CommandGroup, type OptionSpec, type ParsedValue } from './command.ts';

/** A parsed command line: a command with arguments, an unknown word instead, or a text to show (help, the version). */
type Parsed =
  | { readonly type: 'run'; readonly command: Command; readonly args: Readonly<Record<string, ParsedValue>> }
  | { readonly type: 'unknown'; readonly group: readonly string[]; readonly word: string }
  | { readonly type: 'show'; readonly text: string; readonly to: 'stdout' | 'stderr'; readonly exitCode: number };

interface ProgramData {
  readonly commands: readonly Command[];
  readonly groups: readonly CommandGroup[];
  readonly version: string;
  readonly width: number;
}

/**
 * Parses the words after `svc`. Only this file uses the argument parser. Throws SVC_USAGE with the command that was
 * probably meant. A bare `svc` or `svc serve` shows help as an error does: on stderr, exit code 2.
 */
export function parseCommandLine(argv: readonly string[], data: ProgramData): Parsed {
  const output: { text: string; ran: Parsed | undefined } = { text: '', ran: undefined };
  const program = createParser('svc', data, output);
  program.description('Deploys any HTTP serving program as identical replicas behind one endpoint.');
  const parents = new Map<string, Parser>();
  for (const group of data.groups) {
    const parser = createParser(group.name, data, output).summary(group.summary).description(`${group.summary}.`);
    program.addCommand(parser);
    parents.set(group.name, parser);
  }
  for (const command of data.commands) {
    const parent = command.path.length > 1 ? parents.get(command.path[0]) : program;
    parent?.addCommand(createLeaf(command, argv, data, output), { hidden: command.hidden === true });
  }
  // After the leaf commands, so that help lists them in the order of the table.
  program.option('--version', 'show the version');
  program.on('option:version', () => {
    output.ran ??= { type: 'show', text: `${data.version}\n`, to: 'stdout', exitCode: 0 };
    throw new CommanderError(0, 'commander.version', 'version');
  });
  try {
    program.parse(asOptions(argv), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (output.ran !== undefined) return output.ran;
    const bare = error.code === 'commander.help';
    return { type: 'show', text: output.text, to: bare ? 'stderr' : 'stdout', exitCode: bare ? 2 : 0 };
  }
  if (output.ran === undefined) throw new SvcError('SVC_USAGE', 'No command was given.', { hint: 'Run: svc --help' });
  return output.ran;
}

/** Users also type `svc help serve up`, `svc version` and `svc -v`: each is replaced by its option. */
function asOptions(argv: readonly string[]): readonly string[] {
  const [first = '', ...rest] = argv;
  if (first === 'help') return [...rest, '--help'];
  return rest.length === 0 && ['version', '-v', '-V'].includes(first) ? ['--version'] : argv;
}

function createParser(name: string, data: ProgramData, output: { text: string; ran: Parsed | undefined }): Parser {
  const parser: Parser = new Parser(name);
  return parser
    .helpCommand(false)
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .configureOutput({
      writeOut: (text) => (output.text += text),
      writeErr: (text) => (output.text += text),
      // Prints nothing: the thrown error contains the message.
      outputError: () => undefined,
      getOutHelpWidth: () => data.width,
      getErrHelpWidth: () => data.width,
    })
    .exitOverride((error) => {
      if (error.code === 'commander.unknownCommand') {
        const word = /'(.*)'/s.exec(error.message)?.[1] ?? '';
        output.ran = { type: 'unknown', group: commandPath(parser).split(' ').slice(1), word };
      }
      throw output.ran === undefined && isUsageError(error) ? usageError(error, parser) : error;
    });
}

function createLeaf(
  command: Command,
  argv: readonly string[],
  data: ProgramData,
  output: { text: string; ran: Parsed | undefined },
): Parser {
  const parser = createParser(command.path.at(-1) ?? '', data, output).summary(command.summary);
  parser.description(command.description === undefined ? `${command.summary}.` : `${command.summary}. ${command.description}`);
  for (const { kind, label, summary } of Object.values(command.arguments)) {
    const form = kind === 'one' ? `<${label}>` : kind === 'optional' ? `[${label}]` : `[${label}...]`;
    parser.argument(form, summary);
  }
  for (const [key, spec] of Object.entries(command.options)) {
    for (const option of createOptions(longName(key), spec)) parser.addOption(option);
  }
  if (command.examples.length > 0) parser.addHelpText('after', `\nExamples:\n${command.examples.map((line) => `  ${line}`).join('\n')}`);
  parser.action(() => {
    output.ran = { type: 'run', command, args: collectArgs(command, parser, argv) };
  });
  return parser;
}

function createOptions(long: string, spec: OptionSpec): readonly Option[] {
  const flags = spec.short === undefined ? `--${long}` : `-${spec.short}, --${long}`;
  if (spec.kind === 'flag') return [new Option(flags, spec.summary)];
  if (spec.kind === 'switch') return [new Option(flags, spec.summary), new Option(`--no-${long}`, spec.offSummary)];
  const value = spec.kind === 'optionalValue' ? `[${spec.label}]` : `<${spec.label}>`;
  const options = [new Option(`${flags} ${value}`, spec.summary)];
  if (spec.alias !== undefined) options.push(new Option(`--${spec.alias} ${value}`).hideHelp());
  for (const option of options) {
    if (spec.kind === 'values') option.argParser((word: string, before: readonly string[] | undefined) => [...(before ?? []), word]);
    if (spec.kind === 'integer') option.argParser((word: string) => parseInteger(word, spec.min, spec.max));
  }
  return options;
}

function parseInteger(word: string, min: number, max: number): number {
  const value = /^-?\d{1,15}$/.test(word) ? Number(word) : Number.NaN;
  if (value >= min && value <= max) return value;
  const bounds = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new InvalidArgumentError(`It must be a whole number ${bounds}.`);
}

/** Arguments and options, under their names in the command's data. */
function collectArgs(command: Command, parser: Parser, argv: readonly string[]): Readonly<Record<string, ParsedValue>> {
  const dashes = argv.indexOf('--');
  const takesRest = Object.values(command.arguments).some(({ kind }) => kind === 'afterDashes');
  const restLength = takesRest && dashes >= 0 ? argv.length - dashes - 1 : 0;
  const words = parser.args.slice(0, parser.args.length - restLength);
  const rest = parser.args.slice(parser.args.length - restLength);
  const given = parser.opts<Readonly<Record<string, ParsedValue>>>();
  const args: Record<string, ParsedValue> = {};
  let position = 0;
  for (const [key, { kind }] of Object.entries(command.arguments)) {
    if (kind === 'afterDashes') args[key] = rest;
    else if (kind === 'many') args[key] = words.slice(position);
    else args[key] = words[position];
    position += 1;
  }
  for (const [key, spec] of Object.entries(command.options)) {
    const value = given[key] ?? (spec.alias === undefined ? undefined : given[camelCase(spec.alias)]);
    args[key] = value ?? (spec.kind === 'flag' ? false : spec.kind === 'values' ? [] : undefined);
  }
  if (takesRest && words.length > Object.keys(command.arguments).length - 1) {
    throw new SvcError('SVC_USAGE', 'Too many words before `--`.', { hint: `Run: ${commandPath(parser)} --help` });
  }
  return args;
}

function camelCase(long: string): string {
  return long.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function isUsageError(error: CommanderError): boolean {
  return !['commander.help', 'commander.helpDisplayed', 'commander.version'].includes(error.code);
}

function usageError(error: CommanderError, parser: Parser): SvcError {
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n');
  const meant = /^\(Did you mean (--?[\w-]+)\?\)$/.exec(suggestion ?? '')?.[1];
  const help = `Run: ${commandPath(parser)} --help`;
  const sentence = `${message.charAt(0).toUpperCase()}${message.slice(1)}${message.endsWith('.') ? '' : '.'}`;
  return new SvcError('SVC_USAGE', sentence, { hint: meant === undefined ? help : `Did you mean '${meant}'? ${help}` });
}

function commandPath(parser: Parser): string {
  return parser.parent === null ? parser.name() : `${commandPath(parser.parent)} ${parser.name()}`;
}
