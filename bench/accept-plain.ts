import type { PgbenchScript } from './pgbench-script.ts'
import type { Postern } from './postern.ts'
import { acceptOne } from './queue.ts'
import type { Sender } from './senders.ts'

/**
 * Writes one message in one transaction with plain statements: locks and increments the quota rows, and inserts each
 * row with a separate INSERT. The rows are copied column by column from those that the API wrote for a message, except
 * for values that are unique to each message.
 */
export async function plainAcceptance(
  postern: Postern,
  sender: Sender,
  sampleMessage: object,
): Promise<PgbenchScript> {
  const id = await acceptOne(postern, sender, sampleMessage)
  const constants: Record<string, string> = {}
  const inserts: string[] = []
  for (const [table, idColumn] of Object.entries(tables)) {
    const values = Object.entries(await rowOf(postern, table, idColumn, id)).flatMap(([column, value]) => {
      const own = ofEachMail[`${table}.${column}`] ?? ofEachMail[column]
      if (own === 'default' || value === null) return []
      if (own !== undefined) return [[column, own]]
      const name = `${table}_${column}`
      constants[name] = value
      return [[column, `:${name}`]]
    })
    const [columns, given] = [values.map(([column]) => column), values.map(([, value]) => value)]
    inserts.push(`insert into mail.${table} (${columns.join(', ')})\nvalues (${given.join(', ')});`)
  }
  const text = [
    '\\set n :n + 1',
    '\\set project :first + mod(:client_id, :senders)',
    '\\set identity :project + :identity_offset',
    '\\set key :project + :key_offset',
    'begin;',
    `select accepted from mail.usage where ${quotaRows} order by period for no key update;`,
    ...inserts,
    `update mail.usage set accepted = accepted + 1 where ${quotaRows};`,
    'commit;',
  ]
  return { preparedByApi: 0, text: `${text.join('\n')}\n`, constants }
}

const tables = {
  messages: 'id',
  bodies: 'message_id',
  recipients: 'message_id',
  dispatch: 'message_id',
  events: 'message_id',
}

const idOfMail = `(:prefix || lpad(to_hex(:n::int), 8, '0') || lpad(to_hex(:client_id::int), 12, '0'))::uuid`
const addressOfMail = `'ada' || :n::int || '-' || :client_id::int || '@example.net'`
const ofEachMail: Record<string, string> = {
  'messages.id': idOfMail,
  'events.id': 'postern.uuid7(postern.now())',
  message_id: idOfMail,
  project_id: ':project',
  identity_id: ':identity',
  api_key_id: ':key',
  from_address: `'shop@sender' || :client_id::int || '.example.com'`,
  address: addressOfMail,
  recipient: addressOfMail,
  created_at: 'default',
  updated_at: 'default',
  due_at: 'default',
}

const today = (period: string): string =>
  `(period = '${period}' and starts_on = date_trunc('${period}', postern.now() at time zone 'UTC')::date)`
const quotaRows = `shard = postern.shard_of(:project) and project_id = :project and (${today('day')} or ${today('month')})`

/** The columns written, with their values as PostgreSQL literals. */
async function rowOf(
  { superuser }: Postern,
  table: string,
  idColumn: string,
  id: string,
): Promise<Record<string, string | null>> {
  const { rows: columns } = await superuser.query<{ name: string }>(
    `select attname as name from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [`mail.${table}`],
  )
  const list = columns.map(({ name }) => `${name}::text`).join(', ')
  const { rows } = await superuser.query<Record<string, string | null>>(
    `select ${list} from mail.${table} where ${idColumn} = $1`,
    [id],
  )
  if (rows.length !== 1 || !rows[0]) throw new Error(`a message has ${rows.length} rows in mail.${table}`)
  return rows[0]
}
