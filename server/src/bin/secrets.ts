import { randomUUIDv7 } from 'node:crypto'
import type { Context } from '../context.ts'
import { shell } from '../core/audit/record.ts'
import { listMasterKeys, type MasterKeyUse, rewrapProjectKeys } from '../core/secrets/rewrap.ts'
import { UsageError } from '../platform/errors.ts'
import { type Command, options, say, withContext } from './command.ts'

const usage = `Usage:
  postern secrets status
  postern secrets rewrap`

export const secrets: Command = {
  async run([verb, ...args]) {
    if (verb === 'status') {
      options(args)
      await withContext(async (context) => showStatus(await statusOf(context)))
    } else if (verb === 'rewrap') {
      options(args)
      await withContext(rewrap)
    } else {
      throw new UsageError(usage)
    }
  },
}

const statusOf = ({ db, config }: Context): Promise<MasterKeyUse[]> =>
  db.admin.read((tx) => listMasterKeys(tx, config.masterKeys))

const states: Record<MasterKeyUse['state'], string> = {
  first: 'first: wraps new keys',
  listed: 'listed',
  missing: 'MISSING in POSTERN_MASTER_KEYS: what is encrypted under it cannot be read',
  wrong: 'DOES NOT OPEN what it wrapped: another key is listed under its name, or the table was altered',
}

function showStatus(uses: MasterKeyUse[]): void {
  const width = Math.max(...uses.map(({ id }) => id.length), 'master key'.length)
  say(`${'master key'.padEnd(width)}  project keys  state`)
  for (const { id, keys, state } of uses) {
    const note = state === 'listed' && keys === 0 ? 'listed, not in use' : states[state]
    say(`${id.padEnd(width)}  ${String(keys).padStart(12)}  ${note}`)
  }
  if (uses.some(({ state }) => state === 'missing' || state === 'wrong')) process.exitCode = 1
}

async function rewrap(context: Context): Promise<void> {
  const { db, config } = context
  const [first] = config.masterKeys
  const { rewrapped, unopened } = await rewrapProjectKeys(db.admin, config.masterKeys, {
    actor: shell('postern secrets rewrap'),
    requestId: randomUUIDv7(),
    onBatch: showProgress,
  })
  endProgress()
  say(`Rewrapped under the master key "${first.id}": ${projectKeys(rewrapped)}.`)
  if (unopened.count > 0) {
    say(`Could not be unwrapped, and left alone: ${projectKeys(unopened.count)}.`)
    for (const example of unopened.examples) say(`  ${example}`)
    if (unopened.count > unopened.examples.length) say('  …')
    process.exitCode = 1
  }
  const others = (await statusOf(context)).filter(({ id, keys }) => id !== first.id && keys > 0)
  say(
    others.length === 0
      ? 'No other master key is in use.'
      : `Still in use: ${others.map(({ id, keys }) => `"${id}" (${projectKeys(keys)})`).join(', ')}.`,
  )
}

const projectKeys = (count: number): string => (count === 1 ? '1 project key' : `${count} project keys`)

// A log or a pipe has no use for it.
const showProgress = (rewrapped: number): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r${rewrapped} project keys rewrapped`)
}

const endProgress = (): void => {
  if (process.stderr.isTTY) process.stderr.write('\n')
}
