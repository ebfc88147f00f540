import { mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname } from 'node:path';

/** The file of a Unix socket that we listen on, at a path that another process may take over. */
export class SocketFile {
  readonly #path: string;
  /** Which file is ours, as another process may put its own in the same place. */
  readonly #inode: number;

  private constructor(path: string, inode: number) {
    this.#path = path;
    this.#inode = inode;
  }

  /**
   * Lets a server listen at the path, with mode 0600, in the place of whoever had it. Rejects with the system's error. It begins under a name of its
   * own: Node removes the file by the name it was made with, which by then can be that of a successor; and clients find one of the two at any moment.
   */
  static async take(server: Server, path: string): Promise<SocketFile> {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const own = `${path}.${process.pid}`;
    rmSync(own, { force: true });
    await listenAt(server, own);
    const { ino } = statSync(own);
    renameSync(own, path);
    return new SocketFile(path, ino);
  }

  /** Takes the file away, unless it is another process's by now. */
  remove(): void {
    if (statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode) rmSync(this.#path, { force: true });
  }
}

function listenAt(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // The file is made inside `listen`, so there is no moment in which others could connect.
    const before = process.umask(0o177);
    try {
      server.listen(path, () => {
        server.off('error', reject);
        resolve();
      });
    } finally {
      process.umask(before);
    }
  });
}
