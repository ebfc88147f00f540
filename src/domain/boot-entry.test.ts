import { expect, test } from 'vitest';
import { shellQuote } from '../remote/shell-quote.ts';
import {
  type BootProgram,
  bootEnv,
  chooseBoot,
  cronCommand,
  cronLine,
  fitsBootEntry,
  systemdUnit,
  unitStartLine,
  withCronLine,
  withoutCronLine,
} from './boot-entry.ts';

const program: BootProgram = {
  name: 'svc-controller-0a1b2c3d',
  svc: '/home/ann/100% mine/svc',
  home: '/home/ann/my "svc" 50%',
  controllerLog: '/home/ann/my "svc" 50%/controller.log',
  env: { PATH: '/usr/bin:/home/ann/$bin', HOME: "/home/ann's" },
};

test.for([
  [{ isRoot: true, hasSystemd: true, hasCrontab: true }, 'system-unit'],
  [{ isRoot: false, hasSystemd: true, hasCrontab: true }, 'user-unit'],
  [{ isRoot: true, hasSystemd: false, hasCrontab: true }, 'cron'],
  [{ isRoot: false, hasSystemd: false, hasCrontab: false }, undefined],
] as const)('a machine with %o starts the controller by %s', ([facts, kind]) => {
  expect(chooseBoot(facts)).toBe(kind);
});

test('a unit quotes spaces, quotes, percent and dollar signs', () => {
  expect(systemdUnit('user-unit', program)).toMatchInlineSnapshot(`
    "# Written by: svc controller install. Removed by: svc controller uninstall.
    [Unit]
    Description=Controller of svc (/home/ann/my "svc" 50%%)
    ConditionPathIsDirectory=/home/ann/my "svc" 50%%

    [Service]
    Environment="PATH=/usr/bin:/home/ann/$bin"
    Environment="HOME=/home/ann's"
    Environment="SVC_HOME=/home/ann/my \\"svc\\" 50%%"
    ExecStart=/bin/sh "/home/ann/100%% mine/svc" controller start --foreground
    StandardOutput=append:/home/ann/my "svc" 50%%/controller.log
    StandardError=inherit
    Restart=on-failure
    RestartSec=10
    KillMode=process
    OOMPolicy=continue
    TasksMax=infinity
    LimitNOFILE=1048576

    [Install]
    WantedBy=default.target
    "
  `);
});

test('a unit of root waits for the network and belongs to the machine', () => {
  const text = systemdUnit('system-unit', program);
  expect(text).toContain('After=network-online.target\n');
  expect(text).toContain('WantedBy=multi-user.target\n');
});

test('a dollar sign in the path of the program is no variable', () => {
  expect(unitStartLine({ svc: '/opt/$x/svc' })).toBe('ExecStart=/bin/sh "/opt/$$x/svc" controller start --foreground');
});

test('a line of the crontab escapes percent signs', () => {
  const line = cronLine(program, shellQuote);
  expect(line).toMatchInlineSnapshot(
    `"@reboot PATH='/usr/bin:/home/ann/$bin' HOME='/home/ann'\\''s' SVC_HOME='/home/ann/my "svc" 50\\%' /bin/sh '/home/ann/100\\% mine/svc' controller start >> '/home/ann/my "svc" 50\\%/controller.log' 2>&1 # svc-controller-0a1b2c3d"`,
  );
  expect(line).toContain(cronCommand(program, shellQuote));
});

test('a new line of the crontab replaces that of the same home only', () => {
  const others = '0 1 * * * backup\n@reboot x # svc-controller-ffffffff\n';
  const once = withCronLine(others, program.name, `@reboot a # ${program.name}`);
  expect(once).toBe(`${others}@reboot a # ${program.name}\n`);
  const again = withCronLine(once, program.name, `@reboot b # ${program.name}`);
  expect(again).toBe(`${others}@reboot b # ${program.name}\n`);
  expect(withoutCronLine(again, program.name)).toBe(others);
  expect(withCronLine('no end of line', 'n', 'x # n')).toBe('no end of line\nx # n\n');
});

test('secrets are named and not passed on', () => {
  const given: Readonly<Record<string, string>> = { PATH: '/bin', AWS_PROFILE: 'work', AWS_SECRET_ACCESS_KEY: 'abc', SHELL: '/bin/sh' };
  expect(bootEnv((name) => given[name])).toEqual({ env: { PATH: '/bin', AWS_PROFILE: 'work' }, secrets: ['AWS_SECRET_ACCESS_KEY'] });
});

test('a line break in a path or a variable does not fit', () => {
  expect(fitsBootEntry(program)).toBe(true);
  expect(fitsBootEntry({ ...program, home: '/a\nb' })).toBe(false);
  expect(fitsBootEntry({ ...program, env: { PATH: '/a\nb' } })).toBe(false);
});
