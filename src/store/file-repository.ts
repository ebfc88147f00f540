import type { Driver } from './driver.ts';
import type { FileRepository } from './store.ts';

/** Files that controllers on other machines need, in a database. */
export function fileRepository(driver: Driver): FileRepository {
  const { db } = driver;
  return {
    async owners() {
      const trees = db.selectFrom('file_trees').select('owner');
      const rows = await trees.union(db.selectFrom('file_blocks').select('owner')).execute();
      return rows.map(({ owner }) => owner);
    },

    async trees(owner) {
      const rows = await db.selectFrom('file_trees').select(['name', 'manifest']).where('owner', '=', owner).orderBy('name').execute();
      return new Map(rows.map(({ name, manifest }) => [name, manifest]));
    },

    async tree(owner, name) {
      const query = db.selectFrom('file_trees').select('manifest').where('owner', '=', owner).where('name', '=', name);
      return (await query.executeTakeFirst())?.manifest;
    },

    async blocks(owner) {
      const rows = await db.selectFrom('file_blocks').select('sha256').where('owner', '=', owner).execute();
      return new Set(rows.map(({ sha256 }) => sha256));
    },

    async block(owner, sha256) {
      const query = db.selectFrom('file_blocks').select('content').where('owner', '=', owner).where('sha256', '=', sha256);
      return (await query.executeTakeFirst())?.content;
    },

    addBlock: (owner, sha256, content) =>
      driver.write(async (writer) => {
        await writer
          .insertInto('file_blocks')
          .values({ owner, sha256, content })
          .onConflict((conflict) => conflict.columns(['owner', 'sha256']).doNothing())
          .execute();
      }),

    setTree: (owner, name, manifest) =>
      driver.write(async (writer) => {
        await writer
          .insertInto('file_trees')
          .values({ owner, name, manifest })
          .onConflict((conflict) => conflict.columns(['owner', 'name']).doUpdateSet({ manifest }))
          .execute();
      }),

    remove: (owner) =>
      driver.write(async (writer) => {
        await writer.deleteFrom('file_trees').where('owner', '=', owner).execute();
        await writer.deleteFrom('file_blocks').where('owner', '=', owner).execute();
      }),
  };
}
