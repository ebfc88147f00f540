import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Listening sockets in the tables of the kernel (proc(5)): field 4 is the state, of which 0A is LISTEN, and field 10 the inode. */
const listening = '0A';

/**
 * Whether somebody else listened at a port before us, sharing it as our own threads do: two processes that looked at the same moment and both found it
 * free. Of two the later one is told so, by the numbers that the kernel gives its sockets. False where that cannot be known.
 */
export function wasShared(port: number): boolean {
  const own = ownSockets();
  const all = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listenersIn(readIfThere(table), port));
  const ours = all.filter((inode) => own.has(inode));
  const first = Math.min(...ours);
  return ours.length > 0 && all.some((inode) => !own.has(inode) && inode < first);
}

/** Inodes of the sockets that listen at a port, of one such table. */
export function listenersIn(table: string, port: number): readonly number[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return table.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    return fields[1]?.endsWith(suffix) === true && fields[3] === listening ? [Number(fields[9])] : [];
  });
}

function ownSockets(): ReadonlySet<number> {
  const inodes = new Set<number>();
  for (const fd of namesIn('/proc/self/fd')) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/self/fd/${fd}`))?.[1];
    if (inode !== undefined) inodes.add(Number(inode));
  }
  return inodes;
}

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // Closed meanwhile, such as the one that the folder was read with.
    return '';
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
