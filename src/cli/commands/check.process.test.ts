import { afterEach, expect, test, vi } from 'vitest';
import { runInProcess } from '../../../test/support/cli-world.ts';
import { withTempHome } from '../../../test/support/temp-home.ts';
import { writeTwoContexts } from '../../../test/support/two-contexts.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** `svc check` in a home whose kubeconfig has two contexts without credentials: no call is made. */
async function check(...words: readonly string[]) {
  return withTempHome(async (home) => {
    vi.stubEnv('KUBECONFIG', writeTwoContexts(home));
    return runInProcess(['check', ...words], { home });
  });
}

test('only the named context is checked, although another one is current', async () => {
  const { code, stdout } = await check('k8s/west');
  expect(code).toBe(0);
  expect(stdout).toContain('kubernetes: disabled. 0 of 1 context can be used\n  west  ');
  expect(stdout).not.toMatch(/east|local|aws/);
});

test('several providers are checked in the order of their names, also with --json', async () => {
  const { code, stdout } = await check('local', 'k8s/east', 'k8s/west', '--json');
  expect(code).toBe(0);
  const { places }: { readonly places: readonly { readonly name: string; readonly summary: string }[] } = JSON.parse(stdout);
  expect(places.map(({ name }) => name)).toEqual(['local', 'kubernetes']);
  expect(places[1]?.summary).toBe('0 of 2 contexts can be used');
});

test.for([
  ['k8s/south', "has no context 'south' (known: east, west)"],
  ['aws/us-east-22', "has no region 'us-east-22' (known: "],
  ['ssh/lab', "has no pool or host 'lab' (there is none)"],
  ['nowhere/x', "no provider called 'nowhere' (known: aws, k8s, ssh, local)"],
  ['k8/east', "no provider called 'k8' (known: aws, k8s, ssh, local). Did you mean 'k8s'?"],
  ['kubernets', "Did you mean 'k8s'?"],
] as const)('%s is refused with the known names, and nothing is checked', async ([word, message]) => {
  const { code, stdout, stderr } = await check('local', word);
  expect({ code, stdout }).toEqual({ code: 6, stdout: '' });
  expect(stderr).toContain(message);
});
