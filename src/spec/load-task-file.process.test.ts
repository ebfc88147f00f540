import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { problemLine } from '../../test/support/task-text.ts';
import { withTempHome } from '../../test/support/temp-home.ts';
import { SvcError } from '../shared/errors.ts';
import { checkTaskFiles } from './check-task-files.ts';
import { loadTaskFile, type LoadedTask } from './load-task-file.ts';

test('a file is read with the additions of the command line', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    writeFileSync(path, '\uFEFFenvs: {A: }\nworkdir: app\nrun: x\n');
    const { task, source } = await loadTaskFile(path, { envs: { A: '1' } });
    expect(task).toMatchObject({ envs: { A: '1' }, workdir: { kind: 'path', path: join(home, 'app') }, run: 'x' });
    expect(source).toEqual({ source: 'envs: {A: }\nworkdir: app\nrun: x\n', file: path, envs: { A: '1' }, secrets: {} });
    expect((await loadTaskFile(path, { envs: { A: '1' }, workdir: '/other' })).task.workdir).toEqual({ kind: 'path', path: '/other' });
  });
});

test('missing, folder, non-text and huge files have codes of their own', async () => {
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

test('a dash means standard input', () => {
  const script = `
    import { loadTaskFile } from ${JSON.stringify(join(import.meta.dirname, 'load-task-file.ts'))};
    const { task, source } = await loadTaskFile('-');
    process.stdout.write(JSON.stringify([task.run, source.file]));
  `;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { input: 'run: hello\n', encoding: 'utf8' });
  expect(JSON.parse(stdout)).toEqual(['hello', '-']);
});

/** The error for files that a task file names. */
async function fileErrorOf({ task, source }: LoadedTask): Promise<SvcError> {
  try {
    await checkTaskFiles(task, source);
  } catch (error: unknown) {
    if (error instanceof SvcError) return error;
    throw error;
  }
  throw new Error('the files were accepted');
}

test('all missing local files are reported at once, each with its position', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    mkdirSync(join(home, 'certs'));
    writeFileSync(join(home, 'data'), '');
    const text =
      'workdir: data\nfile_mounts: {/a: data, /b/: gone, /c: s3://bucket}\nservice: {ports: 80, tls: {keyfile: certs, certfile: cert.pem}}\nrun: x\n';
    writeFileSync(path, text);
    const loaded = await loadTaskFile(path);
    const error = await fileErrorOf(loaded);
    expect(error).toMatchObject({
      code: 'SVC_FILE_NOT_FOUND',
      message: `4 paths in the task file ${path} cannot be used.`,
      hint: 'Check the paths; relative ones start from the folder of the task file.',
    });
    expect(error.problems.map(problemLine)).toEqual([
      `1:10 workdir: ${home}/data is not a folder`,
      `2:30 file_mounts./b/: ${home}/gone does not exist or cannot be read`,
      `3:37 service.tls.keyfile: ${home}/certs is a folder, not a file`,
      `3:54 service.tls.certfile: ${home}/cert.pem does not exist or cannot be read`,
    ]);
    expect(error.problems[1]?.excerpt).toContain('/b/: gone');
    const sound = { ...loaded.task, workdir: { kind: 'path', path: home }, fileMounts: [], service: undefined } as const;
    await expect(checkTaskFiles(sound, loaded.source)).resolves.toBeUndefined();
  });
});

test('a missing folder from the command line is reported without a position', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    writeFileSync(path, 'workdir: .\nfile_mounts: {/a: gone}\n');
    const error = await fileErrorOf(await loadTaskFile(path, { workdir: '/nowhere' }));
    expect(error.message).toBe(
      `The working directory /nowhere, given beside the file, does not exist or cannot be read. A path in the task file ${path} cannot be used.`,
    );
    expect(error.problems.map(problemLine)).toEqual([`2:19 file_mounts./a: ${home}/gone does not exist or cannot be read`]);
  });
});

test('a secret in a path is not shown, however short', async () => {
  await withTempHome(async (home) => {
    const path = join(home, 'service.yaml');
    writeFileSync(path, 'workdir: /nowhere/$KEY\n');
    const error = await fileErrorOf(await loadTaskFile(path, { secrets: { KEY: 'q7' } }));
    expect(error.problems.map(problemLine)).toEqual(['1:10 workdir: /nowhere/$KEY does not exist or cannot be read']);
    expect(JSON.stringify([error.message, error.hint, error.problems])).not.toContain('q7');
  });
});
