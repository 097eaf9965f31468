import { createInterface } from 'node:readline/promises'
import { type Config, loadConfig } from '../config/config.ts'
import type { DatabaseKind } from '../platform/db/database-kind.ts'
import { migrate as migrateDatabase, type PlannedMigration, planMigrations } from '../platform/db/migrate.ts'
import { command, endWith, say } from './command.ts'
import { Progress } from './progress.ts'

export const migrate = command('migrate', {
  async ''({ plan: isPlanOnly, yes, json }) {
    const planned: Planned[] = []
    for (const database of databasesOf(loadConfig(process.env)))
      planned.push({ ...database, plan: await planMigrations(database.ownerUrl) })
    const tell = (line: string): void => void (json || say(line))
    for (const one of planned) if (one.plan.length > 0 || isPlanOnly) tell(planText(one))
    const isPending = planned.some(({ plan }) => plan.length > 0)
    if (isPending && !isPlanOnly && !yes && !(await isAgreed())) {
      process.stderr.write('Nothing was changed.\n')
      return endWith('failed')
    }
    const databases: object[] = []
    for (const one of planned) {
      const { name, plan } = one
      databases.push({ name, plan, ...(isPlanOnly ? {} : await apply(one, tell)) })
    }
    if (json) say(JSON.stringify({ databases }, null, 2))
  },
})

async function apply(
  { name, plan, ownerUrl, url, part }: Planned,
  tell: (line: string) => void,
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
      tell(line)
    },
    onBegin: () => progress.show(++begun, plan.length),
  })
  progress.end()
  for (const migration of applied) tell(`applied ${migration}`)
  tell(
    `${of(name)}${applied.length === 0 ? 'The database is up to date.' : `Done: ${applied.length} migrations.`}`,
  )
  return { notes, applied }
}

const planText = ({ name, plan }: Planned): string =>
  plan.length === 0
    ? `${of(name)}The database is up to date.`
    : [
        `${of(name)}To be applied, each in a transaction of its own:`,
        ...plan.map((one) => `  ${one.name}  ${one.about}`),
      ].join('\n')

/** Named where there are several. */
const of = (name: string | null): string => (name === null ? '' : `${name}: `)

/** Who runs it from a script is not asked. */
async function isAgreed(): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return true
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test(
      (await terminal.question('Apply them now? There is no way back but a backup. [y/N] ')).trim(),
    )
  } finally {
    terminal.close()
  }
}

interface Migrated {
  /** Null: there is no other. */
  name: string | null
  ownerUrl: string
  url: string
  part: DatabaseKind
}

interface Planned extends Migrated {
  plan: PlannedMigration[]
}

/** Cells first: a column that control begins to tell them of must be there to take it. */
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
