import type { TestSshHost } from '../testbed/hosts/test-hosts.ts';

/** Files that the provider may leave on a user's SSH host, as docs/clouds/ssh.md says. */
const allowed = /^(\.svc(|\/bin(|\/node-[^/]+(|\/node))|\/run|\/machines(|\.lock|\/revision))|\/var\/tmp\/svc-ports)$/;

/** Lists the remains of svc on an SSH host that should be clean: files, processes and lines of cron, one line each. */
export async function leftOn(host: TestSshHost): Promise<readonly string[]> {
  const { user } = host;
  const script = [
    `cd /home/${user} && find . -mindepth 1 -not -path './.ssh*' | sed 's|^\\./|file |'`,
    `find /tmp /var/tmp /dev/shm -mindepth 1 | sed 's/^/file /'`,
    `find /run -mindepth 1 -maxdepth 3 -user ${user} | sed 's/^/file /'`,
    // A login session that ends now does not belong to svc.
    `ps -u ${user} -o args= | grep -vE '^sshd(-session)?: ' | sed 's/^/process /'`,
    `crontab -u ${user} -l 2>/dev/null | sed 's/^/cron /'`,
  ];
  const lines = (await host.exec('sh', '-c', `${script.join('; ')}; true`)).split('\n');
  return lines.filter((line) => line !== '' && !(line.startsWith('file ') && allowed.test(line.slice(5))));
}
