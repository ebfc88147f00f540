import { mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname } from 'node:path';

/** The file of a Unix socket that this process listens on, at a path that another process may take over. */
export class SocketFile {
  readonly #path: string;
  /** Identifies our file: another process may have put its own at the path. */
  readonly #inode: number;

  private constructor(path: string, inode: number) {
    this.#path = path;
    this.#inode = inode;
  }

  /**
   * Makes a server listen at the path, with mode 0600, in place of any socket file there. Rejects with the system's
   * error. It first listens under its own name: Node removes the file by its first name, and the path may by then hold
   * a successor's file. Clients always find one of the two sockets.
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

  /** Removes the file, unless it belongs to another process by now. */
  remove(): void {
    if (statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode) rmSync(this.#path, { force: true });
  }
}

function listenAt(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // `listen` makes the file within this call, so no other process can connect before the mode is set.
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
