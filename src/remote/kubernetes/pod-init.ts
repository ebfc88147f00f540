import { readFileSync } from 'node:fs';
import { workFolder } from '../../domain/pod-config.ts';
import { programFile } from '../../shared/program-files.ts';

/** The replica's folder in its pod. */
export const podBaseDir = `${workFolder}/replica`;

/** Command of the container: process 1 of the pod comes as text, so that any image with a shell will do. */
export function podCommand(): readonly string[] {
  const script = readFileSync(programFile('src/node/pod-init.sh'), 'utf8').replaceAll(/^\s*#.*\n/gm, '');
  return ['/bin/sh', '-c', literally(script), 'svc', podBaseDir];
}

/** Kubernetes puts variables into a container's command, as `$(NAME)`, and takes two dollar signs for one. */
function literally(text: string): string {
  return text.replaceAll('$', '$$$$');
}
