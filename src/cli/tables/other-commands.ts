import { defineCommand, type Command } from '../command.ts';
import { json, yes } from './common-options.ts';

const start = defineCommand({
  path: ['controller', 'start'],
  summary: 'Start the controller, if it does not run',
  description: 'Not needed as a rule: the first service starts it.',
  arguments: {},
  options: { json },
  examples: ['svc controller start'],
  run: async (args, context) => (await import('../commands/controller-start.ts')).controllerStart(args, context),
});

const stop = defineCommand({
  path: ['controller', 'stop'],
  summary: 'Stop the controller',
  description: 'It is refused while there are services, unless they are to go on without it: --keep-services.',
  arguments: {},
  options: {
    keepServices: {
      kind: 'flag',
      summary: 'leave services running; the next command starts a controller, which takes them over',
    },
    json,
  },
  examples: ['svc controller stop', 'svc controller stop --keep-services'],
  run: async (args, context) => (await import('../commands/controller-stop.ts')).controllerStop(args, context),
});

const restart = defineCommand({
  path: ['controller', 'restart'],
  summary: 'Start the controller and the processes of services anew, with the code that is there now',
  description:
    'Processes of services that run the same code already are left alone. Services go on, and no request is lost: each balancer starts its successor and hands its port over. A newer version of svc does this by itself with the first command.',
  arguments: {},
  options: { json },
  examples: ['svc controller restart'],
  run: async (args, context) => (await import('../commands/controller-restart.ts')).controllerRestart(args, context),
});

const controllerStatus = defineCommand({
  path: ['controller', 'status'],
  summary: 'Show whether the controller runs, and where its log is',
  description: 'Exits with 3 when it does not run.',
  arguments: {},
  options: { json },
  examples: ['svc controller status'],
  run: async (args, context) => (await import('../commands/controller-status.ts')).controllerStatus(args, context),
});

const upgrade = defineCommand({
  path: ['controller', 'upgrade'],
  summary: 'Bring the program of this version to the machine of the controller',
  description:
    'Also its configuration as it is here now. Services go on, and no request is lost. A controller on this machine needs it not: the first command of a newer version replaces it.',
  arguments: {},
  options: { json },
  examples: ['svc controller upgrade'],
  run: async (args, context) => (await import('../commands/controller-upgrade.ts')).controllerUpgrade(args, context),
});

const controllerDown = defineCommand({
  path: ['controller', 'down'],
  summary: 'Give back the machine of the controller',
  description: 'It is refused while there are services.',
  arguments: {},
  options: {
    yes,
    purge: {
      kind: 'flag',
      summary: 'also when the controller cannot be asked, with every machine in any place that it launched',
    },
    json,
  },
  examples: ['svc controller down', 'svc controller down --purge --yes'],
  run: async (args, context) => (await import('../commands/controller-down.ts')).controllerDown(args, context),
});

const check = defineCommand({
  path: ['check'],
  summary: 'Show where replicas can run, and what to do where they cannot',
  arguments: { place: { kind: 'optional', label: 'PLACE', completes: 'place', summary: 'one place only' } },
  options: { json },
  examples: ['svc check', 'svc check local --json'],
  run: async (args, context) => (await import('../commands/check.ts')).check(args, context),
});

const completion = defineCommand({
  path: ['completion'],
  summary: 'Print the script that completes `svc` at Tab',
  description:
    'It knows commands, options, and the names of services and clusters. Put the line of the example into the start file of the shell.',
  arguments: { shell: { kind: 'one', label: 'SHELL', completes: 'shell', summary: 'bash, zsh or fish' } },
  options: {},
  examples: ['source <(svc completion bash)', 'source <(svc completion zsh)', 'svc completion fish | source'],
  run: async (args, context) => (await import('../commands/completion.ts')).completion(args, context),
});

const complete = defineCommand({
  path: ['complete'],
  summary: 'Print what may follow the given words (called by the completion scripts)',
  arguments: { words: { kind: 'afterDashes', label: '-- WORDS', summary: 'what stands between `svc` and the cursor' } },
  options: {},
  examples: [],
  hidden: true,
  run: async (args, context) => (await import('../commands/complete.ts')).complete(args, context),
});

/** `svc controller …`, `svc check` and `svc completion`. */
export const otherCommands: readonly Command[] = [
  start,
  stop,
  restart,
  controllerStatus,
  upgrade,
  controllerDown,
  check,
  completion,
  complete,
];
