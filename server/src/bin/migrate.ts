import { createInterface } from 'node:readline/promises'
import { type Config, loadConfig } from '../config/config.ts'
import type { DatabaseKind } from '../platform/db/database-kind.ts'
import { migrate as migrateDatabase, type PlannedMigration, planMigrations } from '../platform/db/migrate.ts'
import { command, endWith, say } from './command.ts'
import { Progress } from './progress.ts'

/** `postern migrate`: applies pending migrations to the control database and the cells' databases. */
export const migrate = command('migrate', {
  async ''({ plan: isPlanOnly, yes, json }) {
    const planned: Planned[] = []
    for (const database of databasesOf(loadConfig(process.env)))
      planned.push({ ...database, plan: await planMigrations(database.ownerUrl) })
    const report = (line: string): void => void (json || say(line))
    for (const one of planned) if (one.plan.length > 0 || isPlanOnly) report(planText(one))
    const isPending = planned.some(({ plan }) => plan.length > 0)
    if (isPending && !isPlanOnly && !yes && !(await isConfirmed())) {
      process.stderr.write('Nothing was changed.\n')
      return endWith('failed')
    }
    const databases: object[] = []
    for (const one of planned) {
      const { name, plan } = one
      databases.push({ name, plan, ...(isPlanOnly ? {} : await apply(one, report)) })
    }
    if (json) say(JSON.stringify({ databases }, null, 2))
  },
})

async function apply(
  { name, plan, ownerUrl, url, part }: Planned,
  report: (line: string) => void,
): Promise<{ notes: string[]; applied: string[] }> {
  const notes: string[] = []
  const progress = new Progress('migrations')
  let begun = 0
  const applied = await migrateDatabase({
    ownerUrl,
    appUser: decodeURIComponent(new URL(url).username),
    part,
    log(line) {
      notes.push(line)
      report(line)
    },
    onBegin: () => progress.show(++begun, plan.length),
  })
  progress.end()
  for (const migration of applied) report(`applied ${migration}`)
  report(
    `${of(name)}${applied.length === 0 ? 'The database is up to date.' : `Migrations applied: ${applied.length}.`}`,
  )
  return { notes, applied }
}

const planText = ({ name, plan }: Planned): string =>
  plan.length === 0
    ? `${of(name)}The database is up to date.`
    : [
        `${of(name)}Pending migrations, each applied in its own transaction:`,
        ...plan.map((one) => `  ${one.name}  ${one.about}`),
      ].join('\n')

/** The name of the database, if there are several. */
const of = (name: string | null): string => (name === null ? '' : `${name}: `)

/** Prompts only on a terminal, never in a script. */
async function isConfirmed(): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return true
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test(
      (
        await terminal.question('Apply them now? This can be undone only by restoring a backup. [y/N] ')
      ).trim(),
    )
  } finally {
    terminal.close()
  }
}

interface Migrated {
  /** Null if it is the only database. */
  name: string | null
  ownerUrl: string
  url: string
  part: DatabaseKind
}

interface Planned extends Migrated {
  plan: PlannedMigration[]
}

/**
 * Cells first: a new column of a control table must exist in the cells before the control database replicates it.
 */
function databasesOf({ databaseUrl: url, databaseOwnerUrl: ownerUrl, cells }: Config): Migrated[] {
  const apart = cells.flatMap((cell): Migrated[] =>
    cell.url === undefined
      ? []
      : [{ name: `cell ${cell.name}`, url: cell.url, ownerUrl: cell.ownerUrl ?? cell.url, part: 'cell' }],
  )
  if (apart.length === 0) return [{ name: null, url, ownerUrl, part: 'whole' }]
  const hasMail = apart.length < cells.length
  return [...apart, { name: 'control', url, ownerUrl, part: hasMail ? 'control with mail' : 'control' }]
}
