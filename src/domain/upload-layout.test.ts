import { expect, test } from 'vitest';
import { aServiceSpec, aTask } from '../../test/support/builders.ts';
import { uploadsOf, withUploads } from './upload-layout.ts';

const tls = { minVersion: '1.3' as const, keyfile: '/home/me/key.pem', certfile: '/home/me/chain.pem', clientCa: '/home/me/ca.pem' };
const task = aTask({
  workdir: { kind: 'path', path: '/home/me/app' },
  fileMounts: [
    { target: 'a', source: { kind: 'bucket', uri: 's3://b/a', mode: 'COPY' } },
    { target: 'b', source: { kind: 'path', path: '/data/b' } },
  ],
  service: aServiceSpec({ tls }),
});

test('the uploaded task refers to the uploaded files and folders', () => {
  const folder = '/home/c/uploads/1';
  const moved = withUploads(task, folder);
  const targets = new Map(uploadsOf(task).map(({ source, target }) => [source, `${folder}/${target}`]));
  expect(moved.workdir).toEqual({ kind: 'path', path: targets.get('/home/me/app') });
  expect(moved.fileMounts[1]?.source).toEqual({ kind: 'path', path: targets.get('/data/b') });
  expect(moved.service?.tls).toEqual({
    ...tls,
    keyfile: targets.get(tls.keyfile),
    certfile: targets.get(tls.certfile),
    clientCa: targets.get(tls.clientCa),
  });
  expect(moved.fileMounts[0]).toEqual(task.fileMounts[0]);
});

test('only the TLS files of the endpoint are secret', () => {
  expect(uploadsOf(task).flatMap(({ source, secret }) => (secret ? [source] : []))).toEqual([tls.keyfile, tls.certfile, tls.clientCa]);
});

test('a task without files needs no upload and is unchanged', () => {
  const plain = aTask();
  expect(uploadsOf(plain)).toEqual([]);
  expect(withUploads(plain, '/x')).toEqual(plain);
});
