import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aServiceSpec, aTask } from '../../test/support/builders.ts';
import { aLocalRemote } from '../../test/support/local-remote.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { withUploads } from '../domain/upload-layout.ts';
import { homePaths } from '../shared/paths.ts';
import { uploadFiles } from './upload-files.ts';
import { controllerHome } from './install.ts';

test('task files reach the controller without ignored ones; unchanged files are not sent again', async () => {
  await withTempHome(async (home) => {
    const app = join(home, 'app');
    mkdirSync(join(app, '.git'), { recursive: true });
    writeFileSync(join(app, '.git', 'HEAD'), 'ref');
    writeFileSync(join(app, '.gitignore'), 'secret.txt\n');
    writeFileSync(join(app, 'secret.txt'), 'mine');
    writeFileSync(join(app, 'main.py'), 'print()');
    writeFileSync(join(home, 'one.json'), '{}');
    for (const name of ['key.pem', 'chain.pem']) writeFileSync(join(home, name), name);
    const task = aTask({
      workdir: { kind: 'path', path: app },
      fileMounts: [{ target: 'conf', source: { kind: 'path', path: join(home, 'one.json') } }],
      service: aServiceSpec({ tls: { keyfile: join(home, 'key.pem'), certfile: join(home, 'chain.pem') } }),
    });
    const remote = aLocalRemote(join(home, 'machine'));
    const paths = homePaths(join(home, 'client'), 0);
    mkdirSync(paths.home);
    const deps = { paths, signal: new AbortController().signal, onStep: () => undefined, home: controllerHome(remote) };
    const uploads = join(controllerHome(remote), 'uploads');

    await uploadFiles(remote, task, 'aaaa-1', deps);
    const brought = withUploads(task, join(uploads, 'aaaa-1'));
    expect(readdirSync(brought.workdir?.kind === 'path' ? brought.workdir.path : '').toSorted()).toEqual(['.gitignore', 'main.py']);
    const [mount] = brought.fileMounts;
    expect(mount?.source.kind === 'path' && readFileSync(mount.source.path, 'utf8')).toBe('{}');
    const { keyfile = '', certfile = '' } = brought.service?.tls ?? {};
    expect([readFileSync(keyfile, 'utf8'), readFileSync(certfile, 'utf8')]).toEqual(['key.pem', 'chain.pem']);
    expect(statSync(keyfile).mode & 0o777).toBe(0o600);
    expect(existsSync(join(paths.home, 'cache')) ? readdirSync(join(paths.home, 'cache')) : []).toEqual([]);

    writeFileSync(join(app, 'main.py'), 'print(1)');
    await uploadFiles(remote, task, 'aaaa-2', deps);
    expect(readFileSync(join(uploads, 'aaaa-1', 'workdir', 'main.py'), 'utf8')).toBe('print()');
    expect(readFileSync(join(uploads, 'aaaa-2', 'workdir', 'main.py'), 'utf8')).toBe('print(1)');
  });
});
