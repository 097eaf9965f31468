import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { verified } from '../../server/src/testing/expectations/verify-webhook.ts'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { body } from '../stage.ts'
import { openDesk } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, chooseByKeyboard, confirm, dialogOf } from './dialog.ts'
import { takeSecret } from './secret.ts'
import { furnish } from './seed.ts'
import { looks } from './visual-checks.ts'

/**
 * A customer says that webhooks do not arrive. Ada makes an endpoint, tries it, sees what the receiver answers, has events
 * delivered once more, and ends with a new secret and without the endpoint.
 */
const desk = await openDesk()
const { admin, receiver } = desk
const { project } = await furnish(desk)
const projectId = project.id
const endpoints = `/admin/projects/${projectId}/endpoints`
const page = await desk.browser.enter(desk.ada)
const dialog = dialogOf(page)
const attempts = page.getByRole('table', { name: 'Attempts' })
const progress = page.getByRole('region', { name: 'Progress' })

/** What a customer's server may answer, and a customer may call a thing. */
const hostile = `<img src=x onerror="document.title='owned'">`

interface Endpoint {
  id: number
  name: string
  url: string
  events: string[]
  is_active: boolean
  secret_hint: string
  disabled_reason: string | null
}

const only = async (): Promise<Endpoint> => {
  const { data } = await body<{ data: Endpoint[] }>(200, admin.get(endpoints))
  assert.equal(data.length, 1)
  return data[0] as Endpoint
}

/** In the dialog that is open, in which nothing serious is found: says why, and does it. */
async function act(button: string, reason: string): Promise<void> {
  await dialog.getByRole('textbox', { name: 'Reason' }).fill(reason)
  await dialog.getByRole('button', { name: button, exact: true }).and(page.locator(':enabled')).waitFor()
  assert.deepEqual(await findings(page), [])
  await confirm(page, button)
}

const change = async (item: string) => {
  await page.getByRole('button', { name: 'Change endpoint…' }).click()
  await page.getByRole('menuitem', { name: item }).click()
}

let secret = ''

describe('endpoints', () => {
  it('are none at first, which the page says', async () => {
    await page.goto(`/console/projects/${projectId}/endpoints`)
    await page.getByText('No endpoints', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'endpoints-empty')
  })

  it('are made by a form that says what the server would refuse, and show their secret once', async () => {
    await page.getByRole('button', { name: 'New endpoint' }).click()
    await dialog.getByLabel('Name').fill(`Orders ${hostile}`)
    await dialog.getByLabel('Address').fill('http://hooks.example.com')
    await dialog.getByText('The server would refuse this').waitFor()
    await dialog.getByText(/begins with https/).waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Create endpoint' }).isDisabled())
    await dialog.getByLabel('Address').fill(`${receiver.url}/orders`)
    await dialog.getByLabel('project.locked').check()
    await dialog.getByLabel('project.unlocked').check()
    await dialog.getByText('It receives 2 kinds of events from now on.').waitFor()
    await picture(page, 'endpoint-new')
    await act('Create endpoint', 'They asked for it, ticket 12')
    secret = await takeSecret(page, /^whsec_/, 'endpoint-secret')
    const made = await only()
    assert.equal(made.name, `Orders ${hostile}`)
    assert.deepEqual(made.events, ['project.locked', 'project.unlocked'])
    assert.equal(secret.slice(-4), made.secret_hint)
    await audited(admin, projectId, 'endpoints.create', 'They asked for it, ticket 12')
    await page.getByRole('heading', { name: `Orders ${hostile}` }).waitFor()
    await page.getByText('Nothing was tried yet').waitFor()
  })

  it('show a test event’s attempt without a reload, and what was answered as text', async () => {
    receiver.answer({ status: 200, body: `Thanks. ${hostile}` }, '/orders')
    await page.getByRole('button', { name: 'Send test event' }).click()
    await act('Send test event', 'Does it work?')
    const [received] = await receiver.until(1, '/orders')
    assert.equal(received && verified(secret, received).type, 'endpoint.test')
    await attempts.getByRole('button', { name: 'endpoint.test' }).click()
    await page.getByText(`Thanks. ${hostile}`, { exact: true }).waitFor()
    await progress.getByText('A test event was asked for. 1 attempt since: 1 delivered.').waitFor()
    await page.getByRole('figure', { name: /Latency/ }).waitFor()
    await staysText(page)
    await audited(admin, projectId, 'endpoints.test', 'Does it work?')
    assert.deepEqual(await findings(page), [])
  })

  it('are changed as a whole, and nobody’s change is lost', async () => {
    const { id } = await only()
    await change('Edit endpoint')
    // Grace is faster.
    const seen = await only()
    await body(
      200,
      admin.patch(`${endpoints}/${id}`, {
        name: seen.name,
        url: seen.url,
        events: ['project.locked', 'project.unlocked', 'message.bounced'],
        is_active: true,
      }),
    )
    await dialog.getByLabel('Name').fill('Orders')
    await dialog.getByText('This was changed meanwhile').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'endpoint-conflict')
    await dialog.getByRole('button', { name: 'Go on from there' }).click()
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'Orders')
    assert.ok(await dialog.getByLabel('message.bounced').isChecked())
    await act('Save changes', 'A name that can be read')
    await page.getByRole('heading', { name: 'Orders', exact: true }).waitFor()
    const now = await only()
    assert.deepEqual(now.events, ['message.bounced', 'project.locked', 'project.unlocked'])
    await audited(admin, projectId, 'endpoints.edit', 'A name that can be read')
  })

  it('have events delivered once more, one or those of a time, and say how many have arrived since', async () => {
    const from = new Date(Date.now() - 3_600_000)
    receiver.answer({ status: 503, body: 'Out for lunch' }, '/orders')
    for (const is_locked of [true, false]) {
      await body(200, admin.patch(`/admin/projects/${projectId}`, { is_locked, reason: 'For a try' }))
    }
    const { id } = await only()
    await eventually('an attempt has failed', async () => {
      const { data } = await body<{ data: unknown[] }>(
        200,
        admin.get(`${endpoints}/${id}/attempts?outcome=failed`),
      )
      return data.length > 0
    })
    await page.reload()
    await page.getByRole('combobox', { name: 'Outcome' }).click()
    await page.getByRole('option', { name: 'Failed, tried again' }).click()
    await page.waitForURL(/outcome=failed/)
    await attempts.getByRole('button', { name: 'project.locked' }).first().click()
    await page.getByText('Out for lunch').waitFor()
    await page.getByText(/It answered with 503/).waitFor()

    receiver.answer({ status: 204 }, '/orders')
    await page.getByRole('button', { name: 'Replay this event' }).click()
    await act('Replay event', 'Their lunch is over')
    await progress.getByText(/One event was asked for once more. \d+ attempts? since: [1-9]/).waitFor()
    await audited(admin, projectId, 'endpoints.replay', 'Their lunch is over')

    await page.getByRole('button', { name: 'Replay…' }).click()
    await dialog.getByLabel('From (UTC)').fill(from.toISOString().slice(0, 19))
    await dialog.getByLabel('Only what it has not taken').uncheck()
    await dialog.getByText(/delivered once more, a little at a time/).waitFor()
    await picture(page, 'endpoint-replay')
    await act('Replay events', 'They lost this morning')
    await progress.getByText(/Events from .* were asked for once more. [2-9] attempts since/).waitFor()
    await audited(admin, projectId, 'endpoints.replay', 'They lost this morning')
    const { data } = await body<{ data: { event_type: string; outcome: string }[] }>(
      200,
      admin.get(`${endpoints}/${id}/attempts?outcome=delivered`),
    )
    assert.ok(data.some(({ event_type }) => event_type === 'project.unlocked'))
  })

  it('can be looked at in a wide and a narrow window, by day and by night', async () => {
    const { id } = await only()
    await looks(desk, 'endpoint', `/console/projects/${projectId}/endpoints/${id}`, async (window) => {
      await window.getByRole('table', { name: 'Attempts' }).getByRole('button').first().click()
      await window.getByRole('button', { name: 'Replay this event' }).waitFor()
    })
    await looks(desk, 'endpoints', `/console/projects/${projectId}/endpoints`, (window) =>
      window.getByRole('table', { name: 'Endpoints' }).waitFor(),
    )
  })

  it('say why they are switched off, and are switched on again', async () => {
    const { id } = await only()
    receiver.answer({ status: 410 }, '/orders')
    await body(202, admin.post(`${endpoints}/${id}/test`, {}))
    await eventually('it is switched off', async () => !(await only()).is_active)
    await page.goto(`/console/projects/${projectId}/endpoints/${id}`)
    await page.getByText('This endpoint is switched off').waitFor()
    await page.getByRole('alert').getByText(/410/).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'endpoint-off')
    await page.getByRole('button', { name: 'Switch on' }).click()
    await act('Switch on', 'They are back')
    await page.getByText('This endpoint is switched off').waitFor({ state: 'detached' })
    assert.ok((await only()).is_active)
    await audited(admin, projectId, 'endpoints.edit', 'They are back')
  })

  it('get another secret, which is shown once', async () => {
    await change('Rotate secret')
    assert.ok(await dialog.getByRole('button', { name: 'Rotate secret' }).isDisabled())
    await act('Rotate secret', 'It was in a log')
    const next = await takeSecret(page, /^whsec_/, 'endpoint-rotated')
    assert.notEqual(next, secret)
    assert.equal((await only()).secret_hint, next.slice(-4))
    await page.getByText(`whsec_…${next.slice(-4)}`).waitFor()
    await audited(admin, projectId, 'endpoints.rotate', 'It was in a log')
  })

  it('are deleted, by the keyboard alone', async () => {
    await page.getByRole('button', { name: 'Change endpoint…' }).focus()
    await page.keyboard.press('Enter')
    await chooseByKeyboard(page, 'Delete endpoint')
    await dialog.getByRole('textbox', { name: 'Reason' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.type('The customer has left')
    await dialog.getByRole('button', { name: 'Delete endpoint' }).and(page.locator(':enabled')).waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('No endpoints', { exact: true }).waitFor()
    const { data } = await body<{ data: Endpoint[] }>(200, admin.get(endpoints))
    assert.deepEqual(data, [])
    await audited(admin, projectId, 'endpoints.delete', 'The customer has left')
    await staysText(page)
  })
})
