import { randomUUIDv7 } from 'node:crypto'
import type { Context } from '../context/context.ts'
import { shell } from '../core/control/audit/record.ts'
import {
  listMasterKeys,
  type MasterKeyUse,
  type RewrapOutcome,
  rewrapProjectKeys,
} from '../core/control/secrets/rewrap.ts'
import { command, endWith, print } from './command.ts'
import { Progress } from './progress.ts'
import { withContext } from './with-context.ts'

/** `postern secrets`: shows the master keys in use and rewraps project keys. */
export const secrets = command('secrets', {
  async status({ json }) {
    const uses = await withContext(statusOf)
    print(json, { master_keys: uses }, () => statusText(uses))
    if (uses.some(({ state }) => state === 'missing' || state === 'wrong')) endWith('failed')
  },
  async rewrap({ json }) {
    const { first, outcome, others } = await withContext(rewrap)
    const { rewrapped, unopened } = outcome
    print(
      json,
      {
        master_key: first,
        rewrapped,
        unopened: unopened.count,
        examples: unopened.examples,
        still_in_use: others,
      },
      () => rewrapText(first, outcome, others),
    )
    if (unopened.count > 0) endWith('failed')
  },
})

const statusOf = ({ db, config }: Context): Promise<MasterKeyUse[]> =>
  db.admin.read((tx) => listMasterKeys(tx, config.masterKeys))

const states: Record<MasterKeyUse['state'], string> = {
  first: 'first: wraps new keys',
  listed: 'listed',
  missing: 'MISSING in POSTERN_MASTER_KEYS: its project keys cannot be decrypted',
  wrong: 'WRONG KEY: cannot decrypt its project keys; another key has its name, or the table was altered',
}

function statusText(uses: readonly MasterKeyUse[]): string {
  const width = Math.max(...uses.map(({ id }) => id.length), 'master key'.length)
  const lines = uses.map(({ id, keys, state }) => {
    const note = state === 'listed' && keys === 0 ? 'listed, not in use' : states[state]
    return `${id.padEnd(width)}  ${String(keys).padStart(12)}  ${note}`
  })
  return [`${'master key'.padEnd(width)}  project keys  state`, ...lines].join('\n')
}

async function rewrap(context: Context) {
  const { db, config } = context
  const progress = new Progress('project keys rewrapped')
  const [{ id: first }] = config.masterKeys
  const outcome = await rewrapProjectKeys(db.admin, config.masterKeys, {
    actor: shell('postern secrets rewrap'),
    requestId: randomUUIDv7(),
    onBatch: progress.show,
  })
  progress.end()
  const others = (await statusOf(context)).filter(({ id, keys }) => id !== first && keys > 0)
  return { first, outcome, others }
}

function rewrapText(
  first: string,
  { rewrapped, unopened }: RewrapOutcome,
  others: readonly MasterKeyUse[],
): string {
  const { count, examples } = unopened
  return [
    `Rewrapped under the master key "${first}": ${projectKeys(rewrapped)}.`,
    ...(count > 0 ? [`Could not be unwrapped, left unchanged: ${projectKeys(count)}.`] : []),
    ...examples.map((example) => `  ${example}`),
    ...(count > examples.length ? ['  …'] : []),
    others.length === 0
      ? 'No other master key is in use.'
      : `Still in use: ${others.map(({ id, keys }) => `"${id}" (${projectKeys(keys)})`).join(', ')}.`,
  ].join('\n')
}

const projectKeys = (count: number): string => (count === 1 ? '1 project key' : `${count} project keys`)
