import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkout } from '../support/run-svc.ts';
import { waitFor } from '../support/wait-for.ts';
import type { TestSshHost } from '../testbed/hosts/test-hosts.ts';
import { describeSshHosts } from './support.ts';

/** A server that needs only the tools of the base machine. */
const serviceFile = `service: { readiness_probe: /, replicas: 1 }
resources: { ports: 8080, infra: local }
run: exec perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); setsockopt(S, SOL_SOCKET, SO_REUSEADDR, 1); bind(S, sockaddr_in($ENV{SVC_REPLICA_PORT}, INADDR_ANY)) or die; listen(S, 9); while (accept(C, S)) { sysread(C, $_, 4096); print C "HTTP/1.0 200 OK\\r\\n\\r\\nhere\\n"; close C }'
`;

/** Runs a shell command on the machine as its user. */
const asUser = (host: TestSshHost, command: string): Promise<string> => host.exec('su', '-l', host.user, '-c', command);

/** Parts of a checkout that a user has. */
const parts = ['svc', 'package.json', 'package-lock.json', 'src', 'catalog', 'node_modules', 'schemas'].filter((part) =>
  existsSync(join(checkout, part)),
);

/** Machines see this computer's /var/lib, but not the folders in which checkouts are. Links cost no space. */
async function withVisibleCheckout(use: (root: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync('/var/lib/svc-checkout-');
  try {
    chmodSync(root, 0o755);
    const from = parts.map((part) => join(checkout, part));
    try {
      execFileSync('cp', ['-al', ...from, root], { stdio: 'ignore' });
    } catch {
      // Another file system.
      execFileSync('cp', ['-a', ...from, root]);
    }
    await use(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

describeSshHosts('the start of a local controller after a reboot', (hostOf) => {
  test.skipIf(!existsSync('/usr/sbin/cron'))(
    'cron starts the controller after a reboot, and the endpoint answers without a command',
    () =>
      withVisibleCheckout(async (root) => {
        const host = await hostOf('desk', { sudo: false });
        const svc = `${root}/svc`;
        await asUser(host, `cat > service.yaml << 'END'\n${serviceFile}END`);
        await asUser(host, `${svc} serve up service.yaml -n web --yes --wait`);
        await asUser(host, `${svc} controller install`);
        expect(await asUser(host, 'crontab -l')).toContain(`${svc}' controller start`);
        const endpoint = (await asUser(host, `${svc} serve status --endpoint web`)).trim();

        await host.reboot();
        const answer = (): Promise<string> =>
          asUser(
            host,
            `perl -MIO::Socket -e '
        $s = IO::Socket::INET->new(PeerAddr => "${new URL(endpoint).host}") or exit 0;
        print $s "GET / HTTP/1.0\\r\\n\\r\\n"; print <$s>'`,
          );
        await waitFor('the endpoint to answer', async () => (await answer()).includes('here'), { timeoutMs: 120_000, everyMs: 500 });

        const removed = await asUser(host, `${svc} controller uninstall --json`);
        expect(JSON.parse(removed)).toMatchObject({ removed: { kind: 'cron', isCurrent: true } });
        expect(await asUser(host, 'crontab -l')).not.toContain('svc-controller');
        await asUser(host, `${svc} serve down web --yes`);
      }),
    300_000,
  );
});
