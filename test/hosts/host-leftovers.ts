import type { TestHost } from '../testbed/hosts/test-hosts.ts';

/** What a place may leave on a host of the user's own, as docs/clouds/ssh.md says. */
const allowed = /^\.svc(|\/bin(|\/node-[^/]+(|\/node))|\/run|\/machines(|\.lock|\/revision))$/;

/** What is left of svc on a host that should be as it was: files, processes and lines of cron, one line each. */
export async function leftOn(host: TestHost): Promise<readonly string[]> {
  const { user } = host;
  const script = [
    `cd /home/${user} && find . -mindepth 1 -not -path './.ssh*' | sed 's|^\\./|file |'`,
    `find /tmp /var/tmp /dev/shm -mindepth 1 | sed 's/^/file /'`,
    `find /run -mindepth 1 -maxdepth 3 -user ${user} | sed 's/^/file /'`,
    // A login that ends just now is none of ours.
    `ps -u ${user} -o args= | grep -vE '^sshd(-session)?: ' | sed 's/^/process /'`,
    `crontab -u ${user} -l 2>/dev/null | sed 's/^/cron /'`,
  ];
  const lines = (await host.exec('sh', '-c', `${script.join('; ')}; true`)).split('\n');
  return lines.filter((line) => line !== '' && !(line.startsWith('file ') && allowed.test(line.slice(5))));
}
