import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import type { Remote } from '../remote/remote.ts';
import { systemClock } from '../shared/clock.ts';
import {
  answerOf,
  dialErrorOf,
  job,
  killOn,
  killRecorded,
  processesNaming,
  stubbornTree,
  treeSize,
  until,
  untilCount,
  untilEnded,
  untilFile,
  untilRunning,
} from './job-observation.ts';
import { jobLogPath, jobStatus, letRun, startJob, stopJob, watchJob, type JobSpec } from './job.ts';

interface JobFixture {
  readonly remote: Remote;
  readonly other: Remote;
  readonly node: string;
}

/** A property of jobs on every machine. `run` fails by throwing. */
interface JobCase {
  readonly name: string;
  /** About isolation between machines and the end of processes, where machines differ most. */
  readonly isAboutProcesses?: boolean;
  readonly run: (fixture: JobFixture) => Promise<void>;
}

const spec = (remote: Remote, change: Partial<JobSpec>): JobSpec => ({ env: {}, workdir: `${remote.baseDir}/workdir`, ...change });

/** An argument for `sleep` that no other process on the machine has. */
const aMark = (): string => String(randomInt(1_000_000_000, 2_000_000_000));

/** Shell that waits until the watcher has seen the phase. */
const untilSeen = (phase: string): string => `while [ ! -e saw-${phase} ]; do sleep 0.1; done`;

/** Order, records, logs, signals, and that no process outlives its job. Each case gets its own machines. */
export const jobCases: readonly JobCase[] = [
  {
    name: 'a job that was never started is absent, and stopping it succeeds',
    async run({ remote }) {
      strictEqual((await jobStatus(remote, job)).phase, 'absent');
      await stopJob(remote, job, { graceMs: 0 });
    },
  },
  {
    name: 'setup runs before run, both in the working folder, logged in order',
    async run({ remote }) {
      await startJob(remote, job, spec(remote, { setup: 'echo from setup; pwd > place', run: 'echo from run; cat place; echo oops >&2' }));
      const { phase, exitCode, failedPhase, startedAt, endedAt } = await untilEnded(remote);
      deepStrictEqual({ phase, exitCode, failedPhase }, { phase: 'ended', exitCode: 0, failedPhase: undefined });
      ok(startedAt !== undefined && endedAt !== undefined && startedAt <= endedAt && Math.abs(endedAt - systemClock.now()) < 60_000);
      const log = (await remote.readFile(jobLogPath(remote, job))) ?? '';
      const lines = [
        'setup started',
        'from setup',
        'setup ended with exit code 0',
        'run started',
        'from run',
        `${remote.baseDir}/workdir`,
        'oops',
      ];
      const positions = lines.map((line) => log.indexOf(line));
      ok(
        positions.every((position, index) => position >= 0 && position > (positions[index - 1] ?? -1)),
        log,
      );
    },
  },
  {
    name: 'a waiting job is prepared, runs after letRun, and can be stopped before',
    async run({ remote, other }) {
      for (const one of [remote, other]) await startJob(one, job, spec(one, { setup: 'echo > prepared', run: 'echo > ran', waits: true }));
      for (const one of [remote, other]) {
        await until(async () => (await jobStatus(one, job)).phase === 'waiting', 'the job to wait');
        await untilFile(one, 'prepared');
        strictEqual(await one.readFile(`${one.baseDir}/workdir/ran`), undefined);
      }
      await stopJob(other, job, { graceMs: 5_000 });
      strictEqual((await untilEnded(other)).failedPhase, 'run');
      await letRun(remote, job);
      strictEqual((await untilEnded(remote)).exitCode, 0);
      await letRun(remote, job);
      await untilFile(remote, 'ran');
      strictEqual(await other.readFile(`${other.baseDir}/workdir/ran`), undefined);
    },
  },
  {
    name: 'a job without setup, and one without run, succeed',
    async run({ remote, other }) {
      await startJob(remote, job, spec(remote, { run: 'true' }));
      await startJob(other, job, spec(other, { setup: 'true' }));
      for (const one of [remote, other]) strictEqual((await untilEnded(one)).exitCode, 0);
    },
  },
  {
    name: 'a failed setup ends the job, and run never starts',
    async run({ remote }) {
      await startJob(remote, job, spec(remote, { setup: 'exit 7', run: 'touch ran' }));
      const { exitCode, failedPhase, startedAt } = await untilEnded(remote);
      deepStrictEqual({ exitCode, failedPhase, startedAt }, { exitCode: 7, failedPhase: 'setup', startedAt: undefined });
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/ran`), undefined);
    },
  },
  {
    name: 'the status has the exit code of run',
    isAboutProcesses: true,
    async run({ remote }) {
      await startJob(remote, job, spec(remote, { run: 'exit 42' }));
      const { exitCode, failedPhase, signal } = await untilEnded(remote);
      deepStrictEqual({ exitCode, failedPhase, signal }, { exitCode: 42, failedPhase: 'run', signal: undefined });
    },
  },
  {
    name: 'a killed program is detected at once, with the signal',
    isAboutProcesses: true,
    async run({ remote }) {
      const mark = aMark();
      await startJob(remote, job, spec(remote, { run: `exec sleep ${mark}` }));
      const ended = untilEnded(remote);
      const [pid] = await untilCount(remote, mark, 1);
      await killOn(remote, pid);
      const { exitCode, signal, failedPhase } = await ended;
      deepStrictEqual({ exitCode, signal, failedPhase }, { exitCode: 137, signal: 'SIGKILL', failedPhase: 'run' });
    },
  },
  {
    name: 'a setup that is killed ends the job',
    async run({ remote }) {
      const mark = aMark();
      await startJob(remote, job, spec(remote, { setup: `exec sleep ${mark}`, run: 'touch ran' }));
      strictEqual((await jobStatus(remote, job)).phase, 'setup');
      const [pid] = await untilCount(remote, mark, 1);
      await killOn(remote, pid);
      const { signal, failedPhase } = await untilEnded(remote);
      deepStrictEqual({ signal, failedPhase }, { signal: 'SIGKILL', failedPhase: 'setup' });
    },
  },
  {
    name: 'a job that is started several times runs once',
    async run({ remote }) {
      const once = spec(remote, { setup: 'echo setup >> times', run: 'echo run >> times; sleep 1' });
      await Promise.all([startJob(remote, job, once), startJob(remote, job, once), startJob(remote, job, once)]);
      await startJob(remote, job, once);
      await untilEnded(remote);
      await startJob(remote, job, once);
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/times`), 'setup\nrun\n');
    },
  },
  {
    name: 'a watcher gets each phase once, in order, even if it starts late',
    async run({ remote }) {
      const phases: string[] = [];
      const watching = (async () => {
        for await (const { phase } of watchJob(remote, job, new AbortController().signal)) {
          phases.push(phase);
          // Each phase lasts until the watcher has seen it.
          if (phase === 'setup' || phase === 'run') await remote.writeFile(`${remote.baseDir}/workdir/saw-${phase}`, '');
        }
      })();
      await startJob(remote, job, spec(remote, { setup: untilSeen('setup'), run: untilSeen('run') }));
      await watching;
      deepStrictEqual(
        phases.filter((phase) => phase !== 'absent'),
        ['setup', 'run', 'ended'],
      );
      for await (const { phase } of watchJob(remote, job, new AbortController().signal)) strictEqual(phase, 'ended');
    },
  },
  {
    name: 'variables keep their values, whatever characters they contain',
    async run({ remote }) {
      const odd = {
        ODD: ` it's "$HOME" \`x\` \\ é漢🙂\n\n*?[a] # ; & | > \t`,
        EMPTY: '',
        DASH: '-n',
        dir: 'lower',
        svc_dir: '/nowhere',
        IFS: ':',
      };
      const show = 'printf "<%s>" "$ODD" "$EMPTY" "$DASH" "$dir" "$svc_dir"';
      await startJob(remote, job, spec(remote, { setup: `${show} > in-setup`, run: `${show} > in-run`, env: odd }));
      await untilEnded(remote);
      const expected = [odd.ODD, '', '-n', 'lower', '/nowhere'].map((value) => `<${value}>`).join('');
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/in-setup`), expected);
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/in-run`), expected);
    },
  },
  {
    name: "a user's PATH applies to the program and breaks nothing else",
    async run({ remote }) {
      await startJob(remote, job, spec(remote, { run: 'echo "$PATH" > path', env: { PATH: '/usr/bin:/bin:/my/own' } }));
      strictEqual((await untilEnded(remote)).exitCode, 0);
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/path`), '/usr/bin:/bin:/my/own\n');
    },
  },
  {
    name: "no process argument and no readable file contains a variable's value",
    async run({ remote }) {
      const [secret, mark] = [`secret-${aMark()}`, aMark()];
      await startJob(remote, job, spec(remote, { run: `: $SECRET; exec sleep ${mark}`, env: { SECRET: secret } }));
      await untilCount(remote, mark, 1);
      const script = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | awk 'index($0, ENVIRON["MARK"]) { print }'`;
      strictEqual((await remote.exec(['sh', '-c', script], { env: { MARK: secret } })).stdout, '');
      const open = `grep -rlF -e "$MARK" "$1" | while read -r file; do stat -c '%a' "$file"; done`;
      strictEqual((await remote.exec(['sh', '-c', open, 'sh', remote.baseDir], { env: { MARK: secret } })).stdout, '600\n');
    },
  },
  {
    name: 'a name or value that no process can have is refused',
    async run({ remote }) {
      await rejects(startJob(remote, job, spec(remote, { run: 'true', env: { 'a-b': 'x' } })), /'a-b'/);
      await rejects(startJob(remote, job, spec(remote, { run: 'true', env: { A: 'x\0y' } })), /variable A .*NUL/);
      await rejects(startJob(remote, '../up', spec(remote, { run: 'true' })), /cannot be called/);
    },
  },
  {
    name: 'background processes of run end with it, however they hide',
    isAboutProcesses: true,
    async run({ remote }) {
      const mark = aMark();
      await startJob(remote, job, spec(remote, { run: `${stubbornTree(mark)}\nwhile [ ! -e go ]; do sleep 0.1; done; exit 3` }));
      await untilCount(remote, mark, treeSize);
      await remote.writeFile(`${remote.baseDir}/workdir/go`, '');
      strictEqual((await untilEnded(remote)).exitCode, 3);
      deepStrictEqual(await processesNaming(remote, mark), []);
    },
  },
  {
    name: 'stopping lets a program finish, even below a shell that does not wait',
    isAboutProcesses: true,
    async run({ remote }) {
      const server = `trap 'sleep 0.7; echo finished > work; exit 0' TERM; echo up > up; while :; do sleep 0.1; done`;
      await startJob(remote, job, spec(remote, { run: `sh -c "${server}"\necho never > never` }));
      await untilFile(remote, 'up');
      await stopJob(remote, job, { graceMs: 20_000 });
      strictEqual((await jobStatus(remote, job)).phase, 'ended');
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/work`), 'finished\n');
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/never`), undefined);
    },
  },
  {
    name: 'stopping sends SIGTERM once',
    isAboutProcesses: true,
    async run({ remote }) {
      // The program runs for one more second and would record a second SIGTERM.
      const lines = ["trap 'echo term >> terms; told=1' TERM", 'echo up > up', 'while [ -z "$told" ]; do sleep 0.1; done', 'sleep 1'];
      await startJob(remote, job, spec(remote, { run: lines.join('\n') }));
      await untilFile(remote, 'up');
      await stopJob(remote, job, { graceMs: 20_000 });
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/terms`), 'term\n');
    },
  },
  {
    name: 'stopping ends processes that ignore all signals and have their own sessions',
    isAboutProcesses: true,
    async run({ remote }) {
      const mark = aMark();
      await startJob(remote, job, spec(remote, { run: `trap '' TERM\n${stubbornTree(mark)}\nwhile :; do sleep 1; done` }));
      await untilCount(remote, mark, treeSize);
      deepStrictEqual(await stopJob(remote, job, { graceMs: 200 }), true);
      const { phase, signal } = await jobStatus(remote, job);
      deepStrictEqual({ phase, signal }, { phase: 'ended', signal: 'SIGKILL' });
      deepStrictEqual(await processesNaming(remote, mark), []);
      deepStrictEqual(await stopJob(remote, job, { graceMs: 200 }), false);
    },
  },
  {
    name: 'stopping during setup ends it, and run never starts',
    async run({ remote }) {
      const mark = aMark();
      await startJob(remote, job, spec(remote, { setup: `trap 'exit 0' TERM; sleep ${mark} & wait`, run: 'touch ran' }));
      await untilCount(remote, mark, 1);
      await stopJob(remote, job, { graceMs: 5_000 });
      strictEqual((await jobStatus(remote, job)).phase, 'ended');
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/ran`), undefined);
    },
  },
  {
    name: 'a program continues without its runner, and can be stopped',
    isAboutProcesses: true,
    async run({ remote }) {
      const mark = aMark();
      await startJob(remote, job, spec(remote, { run: `exec sleep ${mark}` }));
      await untilRunning(remote, mark);
      await killRecorded(remote, 'runner');
      strictEqual((await jobStatus(remote, job)).phase, 'run');
      await stopJob(remote, job, { graceMs: 5_000 });
      strictEqual((await jobStatus(remote, job)).phase, 'lost');
      deepStrictEqual(await processesNaming(remote, mark), []);
    },
  },
  {
    name: 'a job whose processes all vanish is lost, and watchers get that status',
    isAboutProcesses: true,
    async run({ remote }) {
      const mark = aMark();
      await startJob(remote, job, spec(remote, { run: `exec sleep ${mark}` }));
      const ended = untilEnded(remote);
      await untilRunning(remote, mark);
      await killRecorded(remote, 'runner');
      await killRecorded(remote, 'program');
      strictEqual((await ended).phase, 'lost');
    },
  },
  {
    name: 'a job that loses its runner during setup is lost',
    async run({ remote }) {
      await startJob(remote, job, spec(remote, { setup: `sleep ${aMark()}`, run: 'true' }));
      await killRecorded(remote, 'runner');
      strictEqual((await jobStatus(remote, job)).phase, 'lost');
    },
  },
  {
    name: 'a program can be interrupted',
    async run({ remote }) {
      await startJob(remote, job, spec(remote, { run: `sh -c 'kill -INT $$; echo survived > survived'` }));
      await untilEnded(remote);
      strictEqual(await remote.readFile(`${remote.baseDir}/workdir/survived`), undefined);
    },
  },
  {
    name: 'programs on two machines listen on the same port at their own addresses',
    isAboutProcesses: true,
    async run({ remote, other, node }) {
      const server = `require('net').createServer((s) => s.on('error', () => {}).end(process.env.WHO)).listen(process.env.SVC_REPLICA_PORT)`;
      const run = `exec "$NODE" -e "${server}"`;
      const env = { NODE: node, SVC_REPLICA_PORT: '8080' };
      await startJob(remote, job, spec(remote, { run, env: { ...env, WHO: 'one' } }));
      await startJob(other, job, spec(other, { run, env: { ...env, WHO: 'two' } }));
      deepStrictEqual([await answerOf(remote), await answerOf(other)], ['one', 'two']);
      // The next case may use the same machines and needs the port.
      await Promise.all([remote, other].map((one) => stopJob(one, job, { graceMs: 0 })));
    },
  },
  {
    name: 'a connection to a port without a listener is refused',
    isAboutProcesses: true,
    async run({ remote }) {
      await startJob(remote, job, spec(remote, { run: 'echo up > up; sleep 300' }));
      await untilFile(remote, 'up');
      await until(async () => (await dialErrorOf(remote)) === 'ECONNREFUSED', 'ECONNREFUSED');
    },
  },
];
