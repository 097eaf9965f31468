import { randomBytes } from 'node:crypto'
import { creator, planWithoutLimits } from '../../bench/senders.ts'
import { type Attack, type Attacker, repeat } from './attack.ts'

export interface StorageSizes {
  /** The value of POSTERN_MAX_BYTES_PER_DAY. */
  bytesPerDay: number
  /** The size of one large message. */
  bytes: number
}

/** H8: stored data that does not count against a quota. */
export function storage({ bytesPerDay, bytes }: StorageSizes): Attack {
  const content = randomBytes((bytes * 3) / 4).toString('base64')
  let keys = 0
  return {
    ...{ id: 'H8', name: 'storage' },
    title: `large messages to suppressed addresses and rejected batches, on a plan with a limit of 0 messages`,
    api: { environment: { POSTERN_MAX_BYTES_PER_DAY: String(bytesPerDay) } },
    async prepare(attacker) {
      await requireByteQuota(attacker, content, bytesPerDay)
      await takePlanAway(attacker)
    },
    async run(attacker, over) {
      await attacker.ask('/suppressions', { body: { address: suppressed } })
      await Promise.all([
        repeat(2, over, () => sendLarge(attacker, suppressed, content)),
        repeat(2, over, () => sendRefused(attacker, `refused-${++keys}`)),
      ])
    },
    async check(attacker) {
      const { stage, tenant } = attacker
      const sum = (size: string, table: string) =>
        stage.sum(size, `${table} where project_id = $1`, tenant.projectId)
      const bodies = await sum('octet_length(content)', 'mail.bodies')
      const answers = await sum('pg_column_size(idempotency)', 'mail.idempotency')
      attacker.refusals.push(`${bodies} bytes in mail.bodies, ${answers} in mail.idempotency`)
      if (bodies > 0) attacker.faults.push(`${bodies} bytes are in mail.bodies on a plan of 0 messages`)
      if (answers > 0) attacker.faults.push(`${answers} bytes of refused batches are in mail.idempotency`)
    },
  }
}

const suppressed = 'suppressed@attacked.test'
const mailsRefused = 500

const sendLarge = (attacker: Attacker, to: string, content: string) =>
  attacker.ask('/messages', {
    body: {
      ...{ from: `shop@${attacker.tenant.domain}`, to: [to], subject: 'Large', text: 'See the attachment.' },
      attachments: [{ filename: 'invoice.pdf', content }],
    },
  })

/** Messages without any of the required fields. */
const sendRefused = (attacker: Attacker, key: string) =>
  attacker.ask('/messages/batch', {
    body: {
      messages: Array.from({ length: mailsRefused }, () => ({ [randomBytes(20).toString('hex')]: 1 })),
    },
    headers: { 'idempotency-key': key },
  })

/** Sends until the daily byte quota is used up. */
async function requireByteQuota(attacker: Attacker, content: string, bytesPerDay: number): Promise<void> {
  const most = Math.floor(bytesPerDay / content.length) + 1
  for (let mails = 0; mails <= most; mails++) {
    const { status, error } = await sendLarge(attacker, 'counted@attacked.test', content)
    if (status === 202) continue
    attacker.refusals.push(`POSTERN_MAX_BYTES_PER_DAY: message ${mails + 1} of ${content.length} bytes`)
    if (mails === 0) attacker.faults.push(`the first message got the response ${status} ${error}`)
    if (status !== 429 || error !== 'quota_exceeded')
      attacker.faults.push(
        `daily bytes: one more got the response ${status} ${error} instead of quota_exceeded`,
      )
    return
  }
  attacker.faults.push(`daily bytes: ${most + 1} messages of ${content.length} bytes were accepted`)
}

async function takePlanAway({ stage, tenant }: Attacker): Promise<void> {
  const limits = { max_mails_per_day: 0, max_mails_per_month: 0 }
  const create = await creator(stage.postern)
  const plan = await create<{ id: number }>('/plans', { ...planWithoutLimits, name: 'None', ...limits })
  await stage.query('update control.projects set plan_id = $2 where id = $1', [tenant.projectId, plan.id])
}
