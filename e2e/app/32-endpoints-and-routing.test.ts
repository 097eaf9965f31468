import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { verified } from '../../server/src/testing/expectations/verify-webhook.ts'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { findings, picture, staysText } from '../console/browser.ts'
import { chooseByKeyboard, dialogOf } from '../console/dialog.ts'
import { takeSecret } from '../console/secret.ts'
import { checkScreens } from '../console/visual-checks.ts'
import { body } from '../stage.ts'
import { openAppSession } from './app-session.ts'

/** Cleo's application receives events at a real HTTPS receiver, and mail for her domain has routes. */
const session = await openAppSession({
  POSTERN_SYSTEM_MAIL_FROM: 'noreply@postern.example.net',
})
const { admin, browser, cleo, project, receiver } = session
const at = `/app/projects/${project.id}`
const api = `/admin/projects/${project.id}`
const page = await browser.enter(cleo)
const dialog = dialogOf(page)
const open = () => browser.enter(cleo)
const routes = page.getByRole('table', { name: 'Routes' })
const attempts = page.getByRole('table', { name: 'Attempts' })

const payload = page.getByRole('region', { name: 'Payload' })

/** Markup in names, URLs, responses and payloads. */
const hostile = `<img src=x onerror="document.title='owned'">`

interface Endpoint {
  id: number
  name: string
  is_active: boolean
  secret_hint: string
}

const only = async (): Promise<Endpoint> => {
  const { data } = await body<{ data: Endpoint[] }>(200, admin.get(`${api}/endpoints`))
  assert.equal(data.length, 1)
  return data[0] as Endpoint
}
const submit = (button: string) => dialog.getByRole('button', { name: button, exact: true }).click()
const more = async (item: string) => {
  await page.getByRole('button', { name: 'More… for this endpoint' }).click()
  await page.getByRole('menuitem', { name: item }).click()
}
const moreFor = async (row: string, item: string) => {
  await page.getByRole('button', { name: `More for ${row}`, exact: true }).click()
  await page.getByRole('menuitem', { name: item }).click()
}
const choose = async (label: string, option: string) => {
  await dialog.getByRole('combobox', { name: label }).click()
  await page.getByRole('option', { name: option }).click()
}

let secret = ''

describe('endpoints', () => {
  it('are created with a secret that is shown once', async () => {
    await page.goto(`${at}/endpoints`)
    await page.getByText('Let your application know what happens').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('button', { name: 'New endpoint' }).click()
    await dialog.getByLabel('Name').fill(`Orders ${hostile}`)
    await dialog.getByLabel('URL').fill(`http://hooks.example.com/${hostile}`)
    await submit('Create endpoint')
    await dialog.getByText('No changes were made').waitFor()
    await staysText(page)
    await dialog.getByLabel('URL').fill(`${receiver.url}/orders`)
    await dialog.getByLabel('project.locked').check()
    await submit('Create endpoint')
    secret = await takeSecret(page, /^whsec_/, 'app-endpoint-secret')
    await page.getByRole('heading', { name: `Orders ${hostile}` }).waitFor()
    await page.getByText('No attempts yet').waitFor()
    await staysText(page)
  })

  it('are tested with one click, and show the response as text', async () => {
    receiver.answer({ status: 200, body: `Thanks. ${hostile}` }, '/orders')
    await page.getByRole('button', { name: 'Send test event' }).click()
    const [received] = await receiver.until(1, '/orders')
    assert.equal(received && verified(secret, received).type, 'endpoint.test')
    await attempts.getByRole('button', { name: 'endpoint.test' }).click()
    await page.getByText(`Thanks. ${hostile}`, { exact: true }).waitFor()
    await payload.getByText('"type": "endpoint.test"').waitFor()
    await page.getByRole('button', { name: 'Copy payload' }).click()
    await page.getByRole('button', { name: 'Copied', exact: true }).waitFor()
    assert.equal(await page.evaluate<string>('navigator.clipboard.readText()'), String(received?.body))
    await page.getByText('active', { exact: true }).waitFor()
    await staysText(page)
    assert.deepEqual(await findings(page), [])
  })

  it('replay an event and a time range', async () => {
    const reason = 'For a try'
    for (const is_locked of [true, false]) {
      await body(200, admin.patch(`/admin/projects/${project.id}`, { is_locked, reason }))
    }
    await attempts.getByRole('button', { name: 'project.locked' }).click()
    await receiver.until(2, '/orders')
    await page.getByRole('button', { name: 'Replay this event' }).click()
    await dialog.getByText('with the same webhook-id').waitFor()
    await submit('Replay event')
    await receiver.until(3, '/orders')
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await dialog.getByLabel('Undelivered only').uncheck()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'app-endpoint-replay')
    await submit('Replay events')
    await receiver.until(4, '/orders')
  })

  it('show a payload as text', async () => {
    const { id, name } = await only()
    const configuration = {
      name,
      url: `${receiver.url}/orders`,
      events: ['project.intervened'],
      is_active: true,
    }
    await body(200, admin.patch(`${api}/endpoints/${id}`, configuration))
    await body(
      201,
      admin.post(`${api}/interventions`, { kind: 'warn', public_note: hostile, reason: 'For a try' }),
    )
    await attempts.getByRole('button', { name: 'project.intervened' }).click()
    await payload.getByText(JSON.stringify(hostile)).waitFor()
    await staysText(page)
    assert.deepEqual(await findings(page), [])
  })

  it('fit, wide and narrow, light and dark', async () => {
    const { id } = await only()
    await checkScreens(
      session,
      'app-endpoint',
      `${at}/endpoints/${id}`,
      async (other) => {
        await other.getByRole('table', { name: 'Attempts' }).getByRole('button').first().click()
        await other.getByRole('button', { name: 'Replay this event' }).waitFor()
        await other.getByRole('region', { name: 'Payload' }).waitFor()
      },
      open,
    )
    await checkScreens(
      session,
      'app-endpoints',
      `${at}/endpoints`,
      (other) => other.getByRole('table', { name: 'Endpoints' }).waitFor(),
      open,
    )
  })

  it('say why they were deactivated, and are activated, edited, rotated and deleted', async () => {
    receiver.answer({ status: 410 }, '/orders')
    await page.getByRole('button', { name: 'Send test event' }).click()
    await eventually('the endpoint is inactive', async () => !(await only()).is_active)
    await page.getByText('This endpoint is inactive').waitFor()
    await page.getByRole('alert').getByText(/410/).waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('button', { name: 'Activate' }).click()
    await submit('Activate')
    await page.getByText('This endpoint is inactive').waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Edit endpoint' }).click()
    await dialog.getByLabel('Name').fill('Orders')
    await submit('Save changes')
    await page.getByRole('heading', { name: 'Orders', exact: true }).waitFor()
    await more('Rotate secret')
    await submit('Rotate secret')
    const next = await takeSecret(page, /^whsec_/, 'app-endpoint-rotated')
    assert.notEqual(next, secret)
    await page.getByText(`whsec_…${next.slice(-5, -1)}`).waitFor()
  })
})

describe('routing', () => {
  it('asks for a domain first, and then for a route', async () => {
    await page.goto(`${at}/routing`)
    await page.getByText('Add a domain first').waitFor()
    await body(
      201,
      admin.post(`${api}/domains`, { name: 'shop.example.org', mta_provider: 'service', reason: 'Theirs' }),
    )
    await page.reload()
    await page.getByText('Receive mail for your domain').waitFor()
    assert.deepEqual(await findings(page), [])
    await page.getByRole('button', { name: 'New route' }).click()
    await dialog.getByRole('textbox', { name: 'Address' }).fill('orders')
    await choose('Endpoint', 'Orders')
    assert.deepEqual(await findings(page), [])
    await picture(page, 'app-route-new')
    await submit('Create route')
    await page.getByRole('button', { name: 'orders@shop.example.org', exact: true }).waitFor()
  })

  it('forwards once the address has confirmed, and resends the link', async () => {
    await page.getByRole('button', { name: 'New route' }).click()
    await dialog.getByLabel('All other addresses in the domain (catch-all)').check()
    await choose('Action', 'Forward to an address')
    await dialog.getByLabel('Forward to').fill('ada@example.com')
    await submit('Create route')
    await page.getByText('not confirmed').waitFor()
    await page.getByText('Deferred until ada@example.com confirms').waitFor()
    await moreFor('all other mail to shop.example.org', 'Resend confirmation link')
    await dialog.getByText('ada@example.com gets an email with a new link.').waitFor()
    await submit('Resend link')
    await dialog.waitFor({ state: 'hidden' })
  })

  it('tests which route an address has', async () => {
    const address = page.getByLabel('Which route matches this address?')
    await address.fill('orders@shop.example.org')
    await address.press('Enter')
    await page.getByText('Mail to orders@shop.example.org').waitFor()
    await page.getByText('matches', { exact: true }).waitFor()
    await checkScreens(
      session,
      'app-routing',
      `${at}/routing?address=orders@shop.example.org`,
      (other) => other.getByText('Mail to orders@shop.example.org').waitFor(),
      open,
    )
    await address.fill(hostile)
    await address.press('Enter')
    await page.waitForURL(/onerror/)
    await staysText(page)
  })

  it('is edited, and deleted by keyboard', async () => {
    await routes.getByRole('button', { name: 'orders@shop.example.org', exact: true }).click()
    await choose('Action', 'Reject')
    await submit('Save route')
    await page.getByRole('row').filter({ hasText: 'orders@' }).getByText('Reject').waitFor()
    await page.getByRole('button', { name: 'More for orders@shop.example.org' }).focus()
    await page.keyboard.press('Enter')
    await chooseByKeyboard(page, 'Delete route')
    await dialog.getByRole('button', { name: 'Cancel' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await routes.getByText('orders@shop.example.org').waitFor({ state: 'detached' })
    // The endpoint is no longer in use.
    await page.goto(`${at}/endpoints/${(await only()).id}`)
    await more('Delete endpoint')
    await submit('Delete endpoint')
    await page.getByText('Let your application know what happens').waitFor()
  })
})
