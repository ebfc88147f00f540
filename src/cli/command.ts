import type { Providers } from '../provision/providers.ts';
import type { Clock } from '../shared/clock.ts';
import type { HomePaths } from '../shared/paths.ts';
import type { Connection } from './connection/controller-connection.ts';
import type { Ui } from './ui.ts';

/** The kind of value of an argument or option. It decides what the shell offers at Tab. */
export type Completes = 'file' | 'folder' | 'service' | 'cluster' | 'provider' | 'shell';

/** One positional argument. `afterDashes`: everything after `--`, word by word. */
export interface ArgumentSpec {
  readonly kind: 'one' | 'optional' | 'many' | 'afterDashes';
  /** The label in help, upper case. */
  readonly label: string;
  readonly summary: string;
  readonly completes?: Completes;
}

interface OptionBase<Kind extends string> {
  readonly kind: Kind;
  /** One letter. */
  readonly short?: string;
  /** A second long name, not shown: the name that similar tools use. */
  readonly alias?: string;
  readonly summary: string;
}

interface ValueOption<Kind extends string> extends OptionBase<Kind> {
  readonly label: string;
  readonly completes?: Completes;
}

interface SwitchOption extends OptionBase<'switch'> {
  readonly offSummary: string;
}

interface IntegerOption extends ValueOption<'integer'> {
  readonly min: number;
  readonly max: number;
}

/**
 * One option. Its long name is its key in kebab-case.
 * - `flag`: `--x`
 * - `switch`: `--x` or `--no-x`; undefined when neither was given
 * - `value`: `--x V`
 * - `optionalValue`: `--x` (true) or `--x V`
 * - `values`: may be repeated
 * - `integer`: a whole number in the bounds
 */
export type OptionSpec =
  | OptionBase<'flag'>
  | SwitchOption
  | ValueOption<'value'>
  | ValueOption<'optionalValue'>
  | ValueOption<'values'>
  | IntegerOption;

interface ArgumentValues {
  readonly one: string;
  readonly optional: string | undefined;
  readonly many: readonly string[];
  readonly afterDashes: readonly string[];
}

interface OptionValues {
  readonly flag: boolean;
  readonly switch: boolean | undefined;
  readonly value: string | undefined;
  readonly optionalValue: string | true | undefined;
  readonly values: readonly string[];
  readonly integer: number | undefined;
}

type ArgumentSpecs = Readonly<Record<string, ArgumentSpec>>;
type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** One field per argument and option, typed by its kind. */
type ParsedArgs<Arguments extends ArgumentSpecs, Options extends OptionSpecs> = {
  readonly [Key in keyof Arguments]: ArgumentValues[Arguments[Key]['kind']];
} & { readonly [Key in keyof Options]: OptionValues[Options[Key]['kind']] };

/** Every value that an argument or option can have after parsing. */
export type ParsedValue = ArgumentValues[ArgumentSpec['kind']] | OptionValues[OptionSpec['kind']];

interface CommandData<Arguments, Options> {
  readonly path: readonly [string, ...string[]];
  readonly summary: string;
  /** Further sentences for help and docs. */
  readonly description?: string;
  readonly arguments: Arguments;
  readonly options: Options;
  readonly examples: readonly string[];
  /** Needs confirmation: asks on a terminal, requires `--yes` otherwise. Has a `yes` flag. */
  readonly destructive?: boolean;
  readonly hidden?: boolean;
}

/** A command as data. The parser, help, completion and docs/reference/cli.md are derived from it. */
export interface Command extends CommandData<ArgumentSpecs, OptionSpecs> {
  /** Returns the exit code; nothing means 0. Loads its code when called, so that other commands start fast. */
  run(args: Readonly<Record<string, ParsedValue>>, context: CommandContext): Promise<number | void>;
}

/** The type of the handler's arguments follows from the command's arguments and options. */
interface CommandDefinition<Arguments extends ArgumentSpecs, Options extends OptionSpecs> extends CommandData<Arguments, Options> {
  run(args: ParsedArgs<Arguments, Options>, context: CommandContext): Promise<number | void>;
}

/** Checks a command against its handler. */
export function defineCommand<const Arguments extends ArgumentSpecs, const Options extends OptionSpecs>(
  command: CommandDefinition<Arguments, Options>,
): Command {
  return command;
}

/** A group of commands, such as `serve`. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
}

/** `envFile` is `--env-file` on the command line. */
export function longName(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The context of every command's handler: all that a handler may access. */
export interface CommandContext {
  readonly connection: Connection;
  readonly ui: Ui;
  /** The providers as this machine sees them, without the controller. */
  readonly providers: () => Promise<Providers>;
  readonly paths: HomePaths;
  readonly clock: Clock;
  readonly env: (name: string) => string | undefined;
  /** The base of relative paths. */
  readonly cwd: string;
  /** Aborts at Ctrl-C. The exit code is then 130, whatever the command returns. */
  readonly signal: AbortSignal;
}
