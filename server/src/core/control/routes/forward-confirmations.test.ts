import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { workerDeps } from '../../../context/context.ts'
import { customers } from '../../../testing/fixtures/customers.ts'
import { receivers } from '../../../testing/fixtures/receiving-projects.ts'
import { startApi } from '../../../testing/harness/api.ts'
import { testDatabase } from '../../../testing/harness/database.ts'
import { openInbound, rcptReplies } from '../../../testing/harness/inbound-harness.ts'
import { sendAllSystemMail } from '../../../testing/harness/system-mail.ts'
import { startMtaInbox } from '../../../testing/peers/mta-inbox.ts'
import { purgeConfirmationMails, releaseConfirmations } from './forward-confirmations.ts'

const inbox = await startMtaInbox()
const database = await testDatabase()
const api = await startApi(database, {
  POSTERN_SYSTEM_MAIL_FROM: 'postern@example.net',
  POSTERN_MTA_HOSTS: inbox.url,
  POSTERN_FORWARD_CONFIRMATIONS_PER_DAY_PER_PROJECT: '4',
  POSTERN_FORWARD_CONFIRMATIONS_PER_DAY_PER_ADDRESS: '2',
})
const deps = workerDeps(api.context)
const { admin, keyOf } = await customers(api, database)
const { makeReceiver } = receivers(database, admin)
const { open } = await openInbound(api, database)
const reason = 'Asked for by the customer'

let targets = 0
const newTarget = () => `target${++targets}@example.net`
/** Simulates a later run: postponed confirmations are checked again. */
async function send(): Promise<void> {
  await database.query(
    'update control.forward_confirmations set postponed_until = null where sent_at is null',
  )
  await releaseConfirmations(deps, 100, AbortSignal.timeout(60_000))
  await sendAllSystemMail(database, deps)
}
const mailsTo = (address: string) => inbox.mails.filter(({ to }) => to.includes(address))
const linkIn = ({ plain }: { plain: string }): string => {
  const url = /http:\S+\/v1\/forwards\/fwd_[\w-]{43}/.exec(plain)?.[0]
  return `${api.url}${new URL(url ?? assert.fail(`no link in: ${plain}`)).pathname}`
}
const linkTo = (address: string) => linkIn(mailsTo(address).at(-1) ?? assert.fail(`no message to ${address}`))
const press = (link: string) =>
  fetch(link, { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } })

type Receiver = Awaited<ReturnType<typeof makeReceiver>>
const forwardTo = (shop: Receiver, local: string, forward_to: string) =>
  shop.route(local, { action: 'forward', forward_to }, { isConfirmed: false })
const confirmedAt = async (shop: Receiver, id: number): Promise<string | null> =>
  (await admin.get(`${shop.path}/routing/${id}`)).body.forward_confirmed_at
const replyAt = async (address: string) => (await rcptReplies(await open(), [address]))[0]?.slice(0, 9)

describe('a forwarding route', () => {
  test('forwards nothing until its target opens the mailed link and presses the button on the page', async () => {
    const shop = await makeReceiver()
    const target = newTarget()
    const route = await forwardTo(shop, 'sales', target)
    assert.deepEqual([route.forward_confirmed_at, route.is_active], [null, true])
    assert.equal(await replyAt(shop.at('sales')), '450 4.3.0')
    await send()
    await send()
    assert.equal(mailsTo(target).length, 1)

    const link = linkTo(target)
    for (let scans = 0; scans < 3; scans++) {
      const page = await fetch(link)
      assert.equal(page.status, 200)
      assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
      assert.match(
        page.headers.get('content-security-policy') ?? '',
        /default-src 'none'; form-action 'self'/,
      )
      const html = await page.text()
      assert.ok(html.includes('<form method="post">') && html.includes(shop.domain.name), html)
    }
    assert.equal((await fetch(link, { method: 'HEAD' })).status, 200)
    assert.equal(await confirmedAt(shop, route.id), null, 'opening the link does not confirm')
    assert.equal(await replyAt(shop.at('sales')), '450 4.3.0')

    assert.equal((await press(link)).status, 200)
    assert.ok(await confirmedAt(shop, route.id))
    assert.equal(await replyAt(shop.at('sales')), '250 2.1.5')
    assert.deepEqual([(await press(link)).status, (await fetch(link)).status], [404, 404], 'good once')
    assert.ok(!api.logLines.join('').includes(link.slice(link.lastIndexOf('/') + 1)))
  })

  test("is confirmed for all of the project's routes to the address, and for no other project", async () => {
    const [shop, other] = [await makeReceiver(), await makeReceiver()]
    const target = newTarget()
    const first = await forwardTo(shop, 'sales', target)
    const second = await forwardTo(shop, 'orders', target.toUpperCase())
    const theirs = await forwardTo(other, 'sales', target)
    await send()
    const [mine] = mailsTo(target).filter(({ plain }) =>
      plain.includes(shop.domain.name.replaceAll('.', '[.]')),
    )
    assert.equal((await press(linkIn(mine ?? assert.fail('no mail')))).status, 200)
    assert.ok((await confirmedAt(shop, first.id)) && (await confirmedAt(shop, second.id)))
    assert.equal(await confirmedAt(other, theirs.id), null)
    const third = await forwardTo(shop, 'third', target)
    assert.ok(third.forward_confirmed_at, 'a route created later')
    await send()
    assert.equal(mailsTo(target).length, 2)
  })

  test('must be confirmed again after its target changes and after the last route to it was deleted', async () => {
    const shop = await makeReceiver()
    const [target, next] = [newTarget(), newTarget()]
    const route = await forwardTo(shop, 'sales', target)
    await send()
    await press(linkTo(target))
    const { id, project_id, forward_confirmed_at, created_at, updated_at, ...config } = (
      await admin.get(`${shop.path}/routing/${route.id}`)
    ).body
    assert.ok(forward_confirmed_at)
    const edit = async (changes: object) =>
      (await admin.patch(`${shop.path}/routing/${id}`, { ...config, ...changes, reason })).body
    assert.ok((await edit({ is_active: false })).forward_confirmed_at, 'other fields do not matter')
    assert.equal((await edit({ forward_to: next })).forward_confirmed_at, null)
    await send()
    const old = linkTo(next)
    assert.equal((await edit({})).forward_confirmed_at, null, 'the last route to the target was deleted')
    assert.equal((await press(old)).status, 404, 'the link of a deleted route')
    assert.equal(await confirmedAt(shop, route.id), null)
    assert.equal((await edit({ action: 'drop', forward_to: null })).forward_confirmed_at, null)
  })

  test('causes no message while its domain is not verified or its project is locked', async () => {
    const pending = await makeReceiver({ status: 'pending' })
    const locked = await makeReceiver()
    const [first, second] = [newTarget(), newTarget()]
    await forwardTo(pending, 'sales', first)
    await forwardTo(locked, 'sales', second)
    await admin.patch(locked.path, { is_locked: true, reason })
    await send()
    assert.deepEqual([mailsTo(first), mailsTo(second)], [[], []])
    await database.query(`update control.domains set status = 'verified' where id = $1`, [pending.domain.id])
    await send()
    assert.equal(mailsTo(first).length, 1)
  })
})

describe('the confirmation message', () => {
  test('has a fixed text, one link, and domain names that are not links', async () => {
    const shop = await makeReceiver({ name: 'visit-phish.example.org' })
    const target = newTarget()
    await forwardTo(shop, 'sales', target)
    await admin.patch(shop.path, { name: 'Renew at https://phish.example', reason })
    await send()
    const [mail = assert.fail('no mail')] = mailsTo(target)
    assert.equal(mail.from, 'postern@example.net')
    const links = [...mail.plain.matchAll(/https?:\S+/g), ...mail.html.matchAll(/href="([^"]*)"/g)]
    assert.deepEqual(
      new Set(links.map((link) => new URL(link[1] ?? link[0]).origin)),
      new Set(['http://localhost:8080']),
    )
    const text = mail.plain + mail.html
    assert.ok(text.includes('visit-phish[.]example[.]org') && !text.includes('visit-phish.example.org'), text)
    assert.ok(!text.includes('Renew') && !text.includes('phish.example'), text)
    const stored = await database.query<{ whole: string }>(
      'select confirmations::text as whole from control.forward_confirmations as confirmations',
    )
    const token = linkTo(target).slice(-47)
    assert.ok(
      stored.every(({ whole }) => !whole.includes(token)),
      'only a hash is stored',
    )
  })

  test('links to a page that names only verified domains', async () => {
    const shop = await makeReceiver()
    const target = newTarget()
    await forwardTo(shop, 'sales', target)
    await send()
    const page = async () => (await fetch(linkTo(target))).text()
    assert.ok((await page()).includes(shop.domain.name))
    await database.query(`update control.domains set status = 'pending' where id = $1`, [shop.domain.id])
    assert.ok(!(await page()).includes(shop.domain.name))
  })

  test('is sent again on request, with a new link that invalidates the previous one', async () => {
    const shop = await makeReceiver()
    const target = newTarget()
    const { id } = await forwardTo(shop, 'sales', target)
    const program = await keyOf(shop.id, ['routing:write'])
    await send()
    const first = linkTo(target)
    const asked = await program.post(`${shop.path}/routing/${id}/request-confirmation`, {})
    assert.equal(asked.status, 200, asked.text)
    await send()
    const second = linkTo(target)
    assert.notEqual(first, second)
    assert.equal((await press(first)).status, 404)
    assert.equal((await press(second)).status, 200)
    const none = await admin.post(`${shop.path}/routing/${id}/request-confirmation`, {})
    assert.ok(none.body.forward_confirmed_at, none.text)
    await send()
    assert.equal(mailsTo(target).length, 2)
  })

  test('is limited per day per address and per project, even if routes are deleted and created again', async () => {
    const [shop, other] = [await makeReceiver(), await makeReceiver()]
    const target = newTarget()
    for (let times = 0; times < 4; times++) {
      const { id } = await forwardTo(shop, 'sales', target)
      await send()
      await admin.delete(`${shop.path}/routing/${id}`, { reason })
    }
    await forwardTo(other, 'sales', target)
    await send()
    assert.equal(mailsTo(target).length, 2, 'two to one address')

    const many = Array.from({ length: 6 }, newTarget)
    for (const [no, address] of many.entries()) await forwardTo(shop, `s${no}`, address)
    await send()
    assert.equal(many.flatMap(mailsTo).length, 2, 'four from one project')
    await database.query(`update control.forward_confirmation_mails set sent_at = sent_at - interval '1 day'`)
    await send()
    assert.equal(many.flatMap(mailsTo).length, 6, 'the remaining ones on the next day')
    await database.query(
      `update control.forward_confirmation_mails set sent_at = sent_at - interval '2 days'`,
    )
    assert.ok((await deps.db.transaction(purgeConfirmationMails)) > 0)
  })

  test('expires after a week', async () => {
    const shop = await makeReceiver()
    const target = newTarget()
    const { id } = await forwardTo(shop, 'sales', target)
    await send()
    await database.query(
      `update control.forward_confirmations set expires_at = expires_at - interval '7 days' where address = $1`,
      [target],
    )
    assert.deepEqual([(await fetch(linkTo(target))).status, (await press(linkTo(target))).status], [404, 404])
    assert.equal(await confirmedAt(shop, id), null)
  })

  test('is retried after a temporary rejection, and counted once', async () => {
    const shop = await makeReceiver()
    const target = newTarget()
    await forwardTo(shop, 'sales', target)
    inbox.refuseWith(451)
    await send()
    inbox.refuseWith(null)
    assert.deepEqual(mailsTo(target), [])
    await send()
    assert.equal(mailsTo(target).length, 1)
    const [row] = await database.query<{ count: number }>(
      'select count(*)::int as count from control.forward_confirmation_mails where project_id = $1',
      [shop.id],
    )
    assert.equal(row?.count, 1)
  })

  test('is pending again if its domain is not verified any more when it is sent', async () => {
    const shop = await makeReceiver()
    const target = newTarget()
    await forwardTo(shop, 'sales', target)
    await releaseConfirmations(deps, 100, AbortSignal.timeout(60_000))
    const setStatus = (status: string) =>
      database.query('update control.domains set status = $2 where id = $1', [shop.domain.id, status])
    await setStatus('pending')
    await sendAllSystemMail(database, deps)
    assert.deepEqual(mailsTo(target), [])
    await setStatus('verified')
    await send()
    assert.equal(mailsTo(target).length, 1)
  })

  test('is not delayed by projects that cannot be mailed or whose messages are temporarily rejected', async () => {
    const [pending, failing, quiet] = [
      await makeReceiver({ status: 'pending' }),
      await makeReceiver(),
      await makeReceiver(),
    ]
    await database.query(
      `insert into control.routes (project_id, domain_id, match, address, action, forward_to)
       select $1, $2, 'address', 'r' || no || '@' || $3, 'forward', 'pending' || no || '@example.net'
         from generate_series(1, 1200) as no`,
      [pending.id, pending.domain.id, pending.domain.name],
    )
    const refused = Array.from({ length: 3 }, newTarget)
    for (const [no, address] of refused.entries()) await forwardTo(failing, `s${no}`, address)
    const target = newTarget()
    await forwardTo(quiet, 'sales', target)
    inbox.refuseWith(451, refused)
    await send()
    inbox.refuseWith(null)
    assert.deepEqual([mailsTo(target).length, refused.flatMap(mailsTo).length], [1, 0])
    const [waiting] = await database.query<{ free: number }>(
      `select count(*) filter (where postponed_until is null)::int as free
         from control.forward_confirmations where sent_at is null`,
    )
    assert.equal(waiting?.free, 0, 'each was checked once')
  })
})

test('an invented link is invalid in any form', async () => {
  for (const token of ['x', `fwd_${'A'.repeat(43)}`, `fwd_${'%00'.repeat(3)}`]) {
    const link = `${api.url}/v1/forwards/${token}`
    assert.deepEqual([(await fetch(link)).status, (await press(link)).status], [404, 404], token)
  }
})
