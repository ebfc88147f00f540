import type { Task } from './task.ts';

/** Something on the client's machine that a controller elsewhere needs, and its place below the folder of an upload. */
export interface Upload {
  readonly source: string;
  readonly target: string;
  /** Holds a private key: copied for its owner's eyes alone, and without regard to rules for what to leave out. */
  readonly secret: boolean;
}

const workdirTarget = 'workdir';
const mountTarget = (index: number): string => `mounts/${index}`;
const keyTarget = 'tls/key.pem';
const certificateTarget = 'tls/certificate.pem';

/** What has to be brought to a controller on another machine for a task. */
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
        ]),
  ];
}

/** The task as it is where its files lie in `folder`, laid out as `uploadsOf` says. */
export function withUploads(task: Task, folder: string): Task {
  const { workdir, service } = task;
  return {
    ...task,
    workdir: workdir?.kind === 'path' ? { kind: 'path', path: `${folder}/${workdirTarget}` } : workdir,
    fileMounts: task.fileMounts.map((mount, index) =>
      mount.source.kind === 'path' ? { ...mount, source: { kind: 'path', path: `${folder}/${mountTarget(index)}` } } : mount,
    ),
    service:
      service?.tls === undefined
        ? service
        : { ...service, tls: { keyfile: `${folder}/${keyTarget}`, certfile: `${folder}/${certificateTarget}` } },
  };
}
