import { loadConfig } from '../config/config.ts'
import { startReplication } from '../platform/db/replication.ts'
import { UsageError } from '../platform/errors.ts'
import { command, print } from './command.ts'
import { Progress } from './progress.ts'

/** `postern cell`: sets up replication from the control database to a cell (docs/operations/scale.md). */
export const cell = command('cell', {
  async join({ name, json }) {
    const { cells } = loadConfig(process.env)
    const wanted = cells.find((one) => one.name === name)
    if (!wanted) throw new UsageError(`There is no cell "${name}" in POSTERN_CELLS.`)
    const { ownerUrl, sourceUrl } = wanted
    if (ownerUrl === undefined || sourceUrl === undefined) {
      throw new UsageError(`Cell "${name}" needs "owner_url" and "source_url" in POSTERN_CELLS.`)
    }
    const progress = new Progress('tables copied')
    const done = await startReplication({
      cell: name,
      ownerUrl,
      sourceUrl,
      onProgress: (there, of) => progress.show(there, of),
    })
    progress.end()
    print(json, { cell: name, is_new: done === 'begun' }, () =>
      done === 'begun'
        ? `Cell "${name}" now replicates the control database.`
        : `Cell "${name}" is up to date.`,
    )
  },
})
