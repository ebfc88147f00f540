import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { printedManifests } from '../../launcher/high-availability/print-manifests.ts';
import { kubeApiOpener, chooseSite } from '../../launcher/high-availability/site.ts';
import { systemRandom } from '../../shared/random.ts';
import { loadConfig } from '../../spec/load-config.ts';
import { printYaml } from '../../spec/print-yaml.ts';
import type { CommandContext } from '../command.ts';

interface ManifestArgs {
  readonly context: string | undefined;
  readonly output: string | undefined;
  readonly withSecrets: boolean;
  readonly json: boolean;
}

/** `svc controller manifests`: prints the Kubernetes objects that `svc serve up` would create; changes nothing. */
export async function controllerManifests(args: ManifestArgs, context: CommandContext): Promise<void> {
  const { ui, paths, clock, signal, cwd } = context;
  const deps = {
    paths,
    providers: await context.providers(),
    config: () => loadConfig(paths.config),
    clock,
    signal,
    onStep: () => undefined,
    openApi: kubeApiOpener(clock, systemRandom),
  };
  const { objects, comment } = await printedManifests(args, deps);
  if (args.output === undefined) {
    if (args.json) ui.json({ objects });
    else ui.print(printYaml(objects, comment).trimEnd());
    return;
  }
  const folder = resolve(cwd, args.output);
  mkdirSync(folder, { recursive: true });
  const files = objects.map((object, index) => {
    const name = `${String(index + 1).padStart(2, '0')}-${object.kind.toLowerCase()}-${object.metadata.name}.yaml`;
    // Only this user may read files with secrets.
    writeFileSync(join(folder, name), printYaml([object]), { mode: object.kind === 'Secret' ? 0o600 : 0o644 });
    return name;
  });
  if (args.json) return ui.json({ folder, files });
  for (const line of comment) ui.say(line);
  // Names the context: kubectl's current context may be another one.
  const { context: cluster } = chooseSite(await deps.config(), args.context);
  ui.say(`Wrote ${files.length} objects to ${folder}. To make them: kubectl --context ${cluster} apply --server-side -f ${folder}`);
}
