import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { customers } from '../../../testing/fixtures/customers.ts'
import { endpointConfiguration } from '../../../testing/fixtures/fixtures.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { sendAllSystemMail } from '../../../testing/harness/system-mail.ts'
import { startMtaInbox } from '../../../testing/peers/mta-inbox.ts'
import { relayToControl } from '../../outbox/relay-to-control.ts'

const inbox = await startMtaInbox()
const database = await testDatabase()
const settings = { POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net', POSTERN_MTA_HOSTS: inbox.url }
const api = await startApi(database, settings)
const deps = workerDeps(api.context)
const { ownProject, make } = await customers(api, database)

const round = (of = deps) => sendAllSystemMail(database, of)
const waiting = async () =>
  (await database.query('select from control.system_mails where outcome is null')).length
const mailsTo = (email: string) => inbox.mails.filter(({ to }) => to.includes(email))

/** A project with an endpoint that has just been disabled. */
async function disabled() {
  const { owner, project } = await ownProject({ name: 'Web shop' })
  const { resource } = await make.makeEndpoint(project.id, { name: 'Order events' })
  const payload = { endpoint_id: resource.id, reason: 'Deliveries failed for five days.' }
  await database.query(
    `insert into mail.outbox (project_id, topic, payload) values ($1, 'endpoint.disabled', $2)`,
    [project.id, JSON.stringify(payload)],
  )
  await relayToControl({ db: deps.db, mailDb: api.context.cells.all[0].mail })
  return {
    owner,
    email: owner.user.email,
    path: `/projects/${project.id}/endpoints/${resource.id}`,
    id: resource.id,
  }
}

describe('the owner of a disabled endpoint', () => {
  test('is notified once, with the reason and instructions', async () => {
    const { email, path } = await disabled()
    await round()
    await round()
    const [mail, ...others] = mailsTo(email)
    assert.deepEqual([mail?.from, others], ['postern@example.net', []])
    const text = mail?.plain ?? ''
    for (const part of [
      'Order events',
      'Web shop',
      'Deliveries failed for five days.',
      `http://localhost:8080/v1${path}/replay`,
    ]) {
      assert.ok(text.includes(part), `${part} is not in: ${text}`)
    }
    assert.ok(
      !`${mail?.plain}${mail?.html}`.includes(new URL(endpointConfiguration.url).host),
      'no link of the customer',
    )
    assert.equal(await waiting(), 0)
  })

  test('is notified later if the MTA is unavailable, without delaying other owners', async () => {
    const first = await disabled()
    inbox.refuseWith(451)
    await round()
    inbox.refuseWith(null)
    assert.equal(await waiting(), 1)
    await round()
    assert.equal(mailsTo(first.email).length, 1)
    assert.equal(await waiting(), 0)
  })

  test('is not notified if the endpoint was enabled in the meantime or the message is permanently rejected', async () => {
    const { owner, email, path } = await disabled()
    assert.equal((await owner.patch(path, endpointConfiguration)).status, 200)
    await round()
    assert.deepEqual([mailsTo(email).length, await waiting()], [0, 0])
    const refused = await disabled()
    inbox.refuseWith(550)
    await round()
    inbox.refuseWith(null)
    await round()
    assert.deepEqual([mailsTo(refused.email).length, await waiting()], [0, 0])
  })

  test('is not notified with a disabled account, or after a week', async () => {
    const second = await disabled()
    await database.query('update control.users set is_active = false where email = $1', [second.email])
    await round()
    const third = await disabled()
    await database.query(`update control.system_mails set expires_at = postern.now() where outcome is null`)
    await round()
    assert.equal(await waiting(), 0)
    for (const { email } of [second, third]) assert.equal(mailsTo(email).length, 0)
  })
})
