import { SvcError } from '../../shared/errors.ts';
import type { CommandContext } from '../command.ts';

interface CompletionArgs {
  readonly shell: string;
}

/** `svc completion`: the script for one shell. */
export async function completion(args: CompletionArgs, { ui }: CommandContext): Promise<void> {
  const shell = shells.find((known) => known === args.shell);
  if (shell === undefined) {
    throw new SvcError('SVC_USAGE', `There is no completion for '${args.shell}'.`, { hint: `Shells are: ${shells.join(', ')}.` });
  }
  ui.write(completionScripts[shell]);
}

/** Shells that `svc completion` writes a script for. */
export const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

// Each script passes the words up to the cursor to `svc complete` as arguments: the shell evaluates nothing that was
// typed. It runs the program by its typed name, so that ./svc of a checkout also completes. Answer lines are
// `value<Tab>summary`; `:files`, `:folders` or `:none` is the kind of value that the shell adds itself.

const bash = `# Completion of svc for bash: source <(svc completion bash)
_svc_complete() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default ;;
      :folders) compopt -o dirnames ;;
      :*) ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _svc_complete svc
`;

const zsh = `#compdef svc
# Completion of svc for zsh: source <(svc completion zsh)
_svc_complete() {
  local line more=none
  local -a items
  while IFS= read -r line; do
    case $line in
      :*) more=\${line#:} ;;
      *) items+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done < <("\${(Q)words[1]}" complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#items} )); then _describe svc items; fi
  case $more in
    files) _files ;;
    folders) _files -/ ;;
  esac
}
(( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit; }
compdef _svc_complete svc
`;

const fish = `# Completion of svc for fish: svc completion fish | source
function __svc_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':folders'
                __fish_complete_directories "$current" ''
            case ':*'
            case '*'
                printf '%s\\n' $line
        end
    end
end
complete -c svc -f -a '(__svc_complete)'
`;

/** The script for each shell. */
export const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
