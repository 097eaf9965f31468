import assert from 'node:assert/strict'
import type { TestDatabase } from './database.ts'

/** Mail as the API and the worker leave it, written straight into the tables. */
export interface TestMail {
  projectId: number
  shard: number
  messageId: string
  recipientNo: number
  address: string
}

export interface MailState {
  status: string
  reply: string | null
  /** Null when there is nothing left to do. */
  dispatch: string | null
  events: { type: string; data: Record<string, unknown> }[]
}

export function mailRows(database: TestDatabase) {
  let made = 0

  /**
   * Handed over, unless told otherwise; with a `dispatch` state its row is still there. `sendIn` is how long from now it
   * is to be sent, such as '1 day'.
   */
  async function makeMail(
    projectId: number,
    {
      address = `Someone${made + 1}@Example.net`,
      sendIn,
      status = sendIn === undefined ? 'sent' : 'scheduled',
      dispatch = sendIn === undefined ? undefined : 'scheduled',
      attempt = 1,
      tags = [],
    }: {
      address?: string
      sendIn?: string
      status?: string
      dispatch?: string | undefined
      attempt?: number
      tags?: string[]
    } = {},
  ): Promise<TestMail> {
    made++
    // A millisecond apart at least, so that they have an order; and none before its time, which events have, too.
    const [row] = await database.query<{ id: string; shard: number }>(
      `insert into mail.messages (id, project_id, identity_id, from_address, recipient_count, size_bytes, send_at, tags)
       values (postern.uuid7(postern.now() - interval '1 minute' + $4 * interval '1 millisecond'), $1, 1,
               'news@example.com', 1, 100, postern.now() + $2::interval, $3)
       returning id, shard`,
      [projectId, sendIn ?? null, tags, made],
    )
    const { id, shard } = row ?? assert.fail()
    await database.query(
      `insert into mail.recipients (message_id, recipient_no, project_id, kind, address, status)
       values ($1, 0, $2, 'to', $3, $4)`,
      [id, projectId, address, status],
    )
    if (dispatch !== undefined) {
      await database.query(
        `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, state,
                                    attempt, leased_until, due_at)
         values ($1, 0, $2, 1, 'service', $3, $4, $5,
                 case $4 when 'leased' then postern.now() + interval '1 minute' end,
                 postern.now() + coalesce($6::interval, '0'))`,
        [id, projectId, address, dispatch, attempt, sendIn ?? null],
      )
    }
    return { projectId, shard, messageId: id, recipientNo: 0, address }
  }

  /** As when its time is over and its partitions are dropped. */
  async function dropMail(projectId: number, messageId: string): Promise<void> {
    for (const table of ['dispatch', 'recipients', 'events']) {
      await database.query(`delete from mail.${table} where project_id = $1 and message_id = $2`, [
        projectId,
        messageId,
      ])
    }
    await database.query('delete from mail.messages where project_id = $1 and id = $2', [
      projectId,
      messageId,
    ])
  }

  async function stateOf({ messageId }: TestMail): Promise<MailState> {
    const [row] = await database.query<Omit<MailState, 'events'>>(
      `select status, reply,
              (select state from mail.dispatch where message_id = $1 and recipient_no = 0) as dispatch
         from mail.recipients where message_id = $1 and recipient_no = 0`,
      [messageId],
    )
    const events = await database.query<MailState['events'][number]>(
      'select type, data from mail.events where message_id = $1 order by id',
      [messageId],
    )
    return { ...(row ?? assert.fail()), events }
  }

  /** What was counted of a project, of all days together; what is zero is left out. */
  async function countsOf(projectId: number): Promise<Record<string, number>> {
    const names = ['sent', 'delivered', 'deferred', 'bounced', 'failed', 'complained', 'suppressed']
    const [row = {}] = await database.query<Record<string, number>>(
      `select ${names.map((name) => `coalesce(sum(${name}), 0)::int as ${name}`).join(', ')}
         from mail.daily where project_id = $1`,
      [projectId],
    )
    return Object.fromEntries(Object.entries(row).filter(([, count]) => count > 0))
  }

  const suppressed = (projectId: number) =>
    database.query<{ address: string; reason: string; message_id: string | null }>(
      'select address, reason, message_id from mail.suppressions where project_id = $1 order by address',
      [projectId],
    )

  const outbox = (projectId: number) =>
    database.query<{ topic: string }>('select topic from mail.outbox where project_id = $1 order by id', [
      projectId,
    ])

  /** Of no message; on its way to nobody. */
  async function makeEvent(projectId: number, type = 'domain.verified'): Promise<string> {
    const [row] = await database.query<{ id: string }>(
      `insert into mail.events (id, project_id, type, data)
       values (postern.uuid7(postern.now()), $1, $2, '{}') returning id`,
      [projectId, type],
    )
    return row?.id ?? assert.fail()
  }

  /** Of a delivery; each a millisecond after the one before. */
  async function makeAttempt(
    projectId: number,
    endpointId: number,
    eventId: string,
    { outcome = 'delivered', attempt = 1 } = {},
  ): Promise<string> {
    const [status, response, error] =
      outcome === 'delivered' ? [200, 'ok', null] : [null, null, 'It did not answer.']
    const [row] = await database.query<{ id: string }>(
      `insert into mail.delivery_attempts
         (id, endpoint_id, event_id, project_id, event_type, attempt, outcome, status, latency_ms, response, error)
       values (postern.uuid7(postern.now() - interval '1 minute' + $9 * interval '1 ms'), $1, $2, $3, 'domain.verified',
               $4, $5, $6, 12, $7, $8)
       returning id`,
      [endpointId, eventId, projectId, attempt, outcome, status, response, error, ++made],
    )
    return row?.id ?? assert.fail()
  }

  return { makeMail, makeEvent, makeAttempt, dropMail, stateOf, countsOf, suppressed, outbox }
}
