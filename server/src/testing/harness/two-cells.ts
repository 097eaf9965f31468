import { startApi, type TestApi } from './api.ts'
import { type TestDatabase, testDatabase } from './database.ts'

/**
 * An API with mail in two databases. The first one also holds the control side. `databaseOf` returns the database of a
 * project's mail; `startWithout` starts an API whose second cell cannot be reached.
 */
export interface TwoCells {
  api: TestApi
  databaseOf: (shard: number) => TestDatabase
  startWithout: () => Promise<TestApi>
}

export async function startTwoCells(database: TestDatabase): Promise<TwoCells> {
  const other = await testDatabase()
  const mailUrl = ({ url, cellUrl }: TestDatabase): string => cellUrl ?? url
  const cells = (url: string): Record<string, string> => ({
    POSTERN_CELLS: JSON.stringify([
      { name: 'a', shards: '0-511', url: mailUrl(database) },
      { name: 'b', shards: '512-1023', url },
    ]),
    POSTERN_CONTROL_REPLICA_MAX_AGE_SECONDS: '86400',
  })
  // Nothing listens on the discard port.
  const nowhere = mailUrl(other).replace(/:\d+\//, ':9/')
  return {
    api: await startApi(database, cells(mailUrl(other))),
    databaseOf: (shard) => (shard < 512 ? database : other),
    startWithout: () => startApi(database, cells(nowhere)),
  }
}
