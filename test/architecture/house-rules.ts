/** A pattern that only some files may contain. Paths are below src/; a path that ends with a slash is a folder. */
export interface HouseRule {
  readonly name: string;
  /** Matched against the code without comments and strings; `imports` against module names. */
  readonly says?: RegExp;
  readonly imports?: RegExp;
  /** Files in which the rule applies; all files when absent. */
  readonly within?: readonly string[];
  readonly except: readonly string[];
  readonly instead: string;
}

/** The rules that one line of code can break. */
export const houseRules: readonly HouseRule[] = [
  {
    name: 'the environment has one reader',
    says: /\bprocess\.env\b/,
    except: ['shared/env.ts', 'node/'],
    instead: 'use envVar() or wholeEnv() of shared/env.ts',
  },
  {
    name: 'time comes from a Clock',
    says: /\b(?:Date\.now|performance\.now|process\.hrtime)\b|\bnew Date\(\s*\)|(?<!\.)\b(?:setTimeout|setInterval)\(|\bAbortSignal\.timeout\(/,
    except: ['shared/clock.ts', 'node/'],
    instead: 'take a Clock (shared/clock.ts), so that tests move time by hand',
  },
  {
    name: 'timers come from a Clock',
    imports: /^node:timers/,
    except: ['shared/clock.ts', 'node/'],
    instead: 'take a Clock (shared/clock.ts)',
  },
  {
    name: 'chance comes from shared/random.ts',
    says: /\bMath\.random\b/,
    except: ['shared/random.ts'],
    instead: 'take a Random (shared/random.ts), so that a seed repeats a run',
  },
  {
    name: 'only the output module prints',
    says: /\bconsole\.|\bprocess\.std(?:out|err)\b/,
    except: ['cli/streams.ts', 'cli/ui.ts', 'node/'],
    instead: 'use the Output of the command, or the Logger in a daemon',
  },
  { name: 'logs have one maker', imports: /^pino$/, except: ['shared/log.ts'], instead: 'use createLogger() of shared/log.ts' },
  {
    name: 'processes are started in few places',
    imports: /^node:child_process$/,
    except: [
      'remote/',
      'providers/local/',
      'providers/home-lock.ts',
      'controller/supervise/supervisor.ts',
      'controller/replaced-state.ts',
      'cli/connection/daemon.ts',
      'balancer/hand-over/standby.ts',
      'balancer/hand-over/successor.ts',
    ],
    instead: 'go through a Remote or the supervisor',
  },
  {
    name: 'no shell sees an argument',
    says: /\bexecSync\(|\bshell:\s*true\b/,
    except: [],
    instead: 'pass arguments as an array to spawn or execFile',
  },
  {
    name: 'SQL lives in store/',
    imports: /^(?:node:sqlite|kysely|pg)$/,
    // SQLite is only the lock there.
    except: ['store/', 'shared/system/process-lock.ts'],
    instead: 'add a method to a repository of store/',
  },
  {
    name: 'YAML is read in spec/',
    imports: /^yaml$/,
    // kubectl owns the kubeconfig format, not svc.
    except: ['spec/', 'kubernetes/kubeconfig.ts'],
    instead: 'parse it in spec/, which knows positions and problems',
  },
  {
    name: 'traffic goes through the own engine',
    says: /\bfetch\(/,
    imports: /^(?:node:https?|undici)$/,
    within: ['balancer/'],
    // No request of the service passes through these files.
    except: ['balancer/metrics/metrics-server.ts'],
    instead: 'the byte path is balancer/http1 over node:net: see docs/decisions',
  },
  {
    name: 'programs that are started often load no undici',
    imports: /^node:http$/,
    within: ['balancer/', 'node/'],
    except: [],
    instead: "use process.getBuiltinModule('node:http'): an import loads undici too, 35 ms of processor time at each start",
  },
  {
    name: "Node's internals have one user",
    imports: /\/node-internals\.ts$/,
    except: ['balancer/transport/handle-transport.ts'],
    instead: 'use a Transport: see docs/decisions/0012-sockets-without-streams.md',
  },
  {
    name: 'decisions wait for nothing',
    says: /\bawait\b|\basync\b/,
    within: ['domain/', 'balancer/http1/', 'balancer/policy/'],
    except: [],
    instead: 'keep it a function of plain data; load before, apply after',
  },
  {
    name: 'dynamic imports are literal, so that a bundle finds them',
    says: /\bimport\((?!\s*['"])/,
    except: [],
    instead: "write import('./x.ts') with the path spelled out",
  },
  { name: 'no default exports', says: /^export default\b/m, except: [], instead: 'export it by name' },
  {
    name: 'type stripping has no code to make',
    says: /^(?:export )?(?:const )?enum\s|^(?:export )?namespace\s/m,
    except: [],
    instead: 'use a union of literals or an object `as const`',
  },
];
