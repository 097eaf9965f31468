import { loadConfig } from '../config.ts'
import { migrate as migrateDatabase } from '../platform/db/migrate.ts'
import { type Command, options, say } from './command.ts'

export const migrate: Command = {
  async run(args) {
    options(args)
    const config = loadConfig(process.env)
    const applied = await migrateDatabase({
      ownerUrl: config.databaseOwnerUrl,
      appUser: decodeURIComponent(new URL(config.databaseUrl).username),
      log: say,
    })
    for (const name of applied) say(`applied ${name}`)
    say(applied.length === 0 ? 'The database is up to date.' : `Done: ${applied.length} migrations.`)
  },
}
