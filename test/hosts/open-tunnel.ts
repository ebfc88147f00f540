import { SshRemote } from '../../src/remote/ssh/index.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { homePaths } from '../../src/shared/paths.ts';

// Opens a tunnel to a port of a machine, prints its address, and exits: `open-tunnel.ts HOME TARGET_JSON BASE_DIR
// PORT`.
const [home = '', target = '', baseDir = '', port = ''] = process.argv.slice(2);
const remote = new SshRemote({
  target: () => Promise.resolve(JSON.parse(target)),
  baseDir,
  enter: [],
  environment: {},
  address: { direct: 'never' },
  paths: homePaths(home, process.getuid?.() ?? 0),
  clock: systemClock,
});
process.stdout.write(JSON.stringify(await remote.address(Number(port))));
process.exit();
