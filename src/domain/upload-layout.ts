import type { Task, TlsSpec } from './task.ts';

/** A file or folder on the client's machine that a remote controller needs, and its path below the upload folder. */
interface Upload {
  readonly source: string;
  readonly target: string;
  /** Contains a private key: copied with access for its owner only, and without ignore rules. */
  readonly secret: boolean;
}

const workdirTarget = 'workdir';
const mountTarget = (index: number): string => `mounts/${index}`;
const keyTarget = 'tls/key.pem';
const certificateTarget = 'tls/certificate.pem';
const clientCaTarget = 'tls/client-ca.pem';

/** The files and folders of a task that a remote controller needs. */
export function uploadsOf(task: Task): readonly Upload[] {
  const tls = task.service?.tls;
  return [
    ...(task.workdir?.kind === 'path' ? [{ source: task.workdir.path, target: workdirTarget, secret: false }] : []),
    ...task.fileMounts.flatMap(({ source }, index) =>
      source.kind === 'path' ? [{ source: source.path, target: mountTarget(index), secret: false }] : [],
    ),
    ...(tls === undefined
      ? []
      : [
          { source: tls.keyfile, target: keyTarget, secret: true },
          { source: tls.certfile, target: certificateTarget, secret: true },
          ...(tls.clientCa === undefined ? [] : [{ source: tls.clientCa, target: clientCaTarget, secret: true }]),
        ]),
  ];
}

/** The task with its paths changed to `folder`, laid out as in `uploadsOf`. */
export function withUploads(task: Task, folder: string): Task {
  const { workdir, service } = task;
  return {
    ...task,
    workdir: workdir?.kind === 'path' ? { kind: 'path', path: `${folder}/${workdirTarget}` } : workdir,
    fileMounts: task.fileMounts.map((mount, index) =>
      mount.source.kind === 'path' ? { ...mount, source: { kind: 'path', path: `${folder}/${mountTarget(index)}` } } : mount,
    ),
    service: service?.tls === undefined ? service : { ...service, tls: uploadedTls(service.tls, folder) },
  };
}

function uploadedTls(tls: TlsSpec, folder: string): TlsSpec {
  return {
    ...tls,
    keyfile: `${folder}/${keyTarget}`,
    certfile: `${folder}/${certificateTarget}`,
    ...(tls.clientCa !== undefined && { clientCa: `${folder}/${clientCaTarget}` }),
  };
}
