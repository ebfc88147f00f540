import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTempHome } from '../../test/support/temp-home.ts';
import { checkTaskFiles } from './check-task-files.ts';
import { loadTaskFile } from './load-task-file.ts';

test('a file is read with what the command line adds', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    writeFileSync(path, '\uFEFFenvs: {A: }\nworkdir: app\nrun: x\n');
    const { task, source } = await loadTaskFile(path, { envs: { A: '1' } });
    expect(task).toMatchObject({ envs: { A: '1' }, workdir: { kind: 'path', path: join(home, 'app') }, run: 'x' });
    expect(source).toEqual({ source: 'envs: {A: }\nworkdir: app\nrun: x\n', file: path, envs: { A: '1' }, secrets: {} });
    expect((await loadTaskFile(path, { envs: { A: '1' }, workdir: '/other' })).task.workdir).toEqual({ kind: 'path', path: '/other' });
  });
});

test('a missing file, a folder, one that is no text and a huge one have codes of their own', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    await expect(loadTaskFile(path)).rejects.toMatchObject({ code: 'SVC_FILE_NOT_FOUND', message: `The file ${path} does not exist.` });
    await expect(loadTaskFile(home)).rejects.toMatchObject({ code: 'SVC_FILE_UNREADABLE', message: `The file ${home} is a folder.` });
    writeFileSync(path, 'run: x\n');
    await expect(loadTaskFile(join(path, 'below'))).rejects.toMatchObject({ code: 'SVC_FILE_NOT_FOUND' });
    const binary = join(home, 'binary');
    writeFileSync(binary, Buffer.from([0xff, 0xfe, 0x00]));
    await expect(loadTaskFile(binary)).rejects.toMatchObject({
      code: 'SVC_FILE_UNREADABLE',
      message: `The file ${binary} is not UTF-8 text.`,
    });
    const huge = join(home, 'huge.yaml');
    writeFileSync(huge, Buffer.alloc(10_000_000, 0x61));
    await expect(loadTaskFile(huge)).rejects.toMatchObject({ code: 'SVC_FILE_TOO_BIG' });
  });
});

// Root may read everything.
test.skipIf(process.getuid?.() === 0)('a file without permission has its own code', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    writeFileSync(path, 'run: x\n');
    chmodSync(path, 0o000);
    await expect(loadTaskFile(path)).rejects.toMatchObject({
      code: 'SVC_FILE_UNREADABLE',
      message: `The file ${path} cannot be read: permission denied.`,
    });
  });
});

test('a dash is standard input', () => {
  const script = `
    import { loadTaskFile } from ${JSON.stringify(join(import.meta.dirname, 'load-task-file.ts'))};
    const { task, source } = await loadTaskFile('-');
    process.stdout.write(JSON.stringify([task.run, source.file]));
  `;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { input: 'run: hello\n', encoding: 'utf8' });
  expect(JSON.parse(stdout)).toEqual(['hello', '-']);
});

test('all local files that are missing are named at once', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    mkdirSync(join(home, 'certs'));
    writeFileSync(join(home, 'data'), '');
    writeFileSync(
      path,
      'workdir: data\nfile_mounts: {/a: data, /b: gone, /c: s3://bucket}\nservice: {ports: 80, tls: {keyfile: certs, certfile: cert.pem}}\n',
    );
    const { task } = await loadTaskFile(path);
    await expect(checkTaskFiles(task)).rejects.toMatchObject({
      code: 'SVC_FILE_NOT_FOUND',
      message: `workdir: ${home}/data is not a folder; file_mounts: /b: ${home}/gone does not exist or cannot be read; service.tls.keyfile: ${home}/certs is a folder, not a file; service.tls.certfile: ${home}/cert.pem does not exist or cannot be read.`,
      hint: 'Check the paths; relative ones start from the folder of the task file.',
    });
    await expect(
      checkTaskFiles({ ...task, workdir: { kind: 'path', path: home }, fileMounts: [], service: undefined }),
    ).resolves.toBeUndefined();
  });
});

test('a secret in a path is not told', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    writeFileSync(path, 'workdir: /nowhere/$KEY\n');
    const { task } = await loadTaskFile(path, { secrets: { KEY: 'hunter2' } });
    await expect(checkTaskFiles(task)).rejects.toMatchObject({ message: 'workdir: /nowhere/*** does not exist or cannot be read.' });
  });
});
