import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { verified } from '../../server/src/testing/expectations/verify-webhook.ts'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import { body } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, chooseByKeyboard, confirm, dialogOf } from './dialog.ts'
import { takeSecret } from './secret.ts'
import { seedProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

/**
 * A customer reports that webhooks do not arrive. Ada creates an endpoint, tests it, reads the receiver's responses,
 * replays events, rotates the secret and deletes the endpoint.
 */
const session = await openAdminSession()
const { admin, receiver } = session
const { project } = await seedProject(session)
const projectId = project.id
const endpoints = `/admin/projects/${projectId}/endpoints`
const page = await session.browser.enter(session.ada)
const dialog = dialogOf(page)
const attempts = page.getByRole('table', { name: 'Attempts' })
const progress = page.getByRole('region', { name: 'Progress' })

/** The console stops polling after 30 seconds; a slow machine needs more. */
const progressShows = (text: RegExp) =>
  eventually(`the progress matches ${text}`, async () => {
    const keepChecking = progress.getByRole('button', { name: 'Keep checking' })
    if (await keepChecking.isVisible()) await keepChecking.click()
    return progress.getByText(text).isVisible()
  })

/** Markup in a response body and in a name. */
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

/** Enters the reason in the open dialog, checks it with axe, and submits. */
async function act(button: string, reason: string): Promise<void> {
  await dialog.getByRole('textbox', { name: 'Reason' }).fill(reason)
  await dialog.getByRole('button', { name: button, exact: true }).and(page.locator(':enabled')).waitFor()
  assert.deepEqual(await findings(page), [])
  await confirm(page, button)
}

const more = async (item: string) => {
  await page.getByRole('button', { name: 'More… for this endpoint' }).click()
  await page.getByRole('menuitem', { name: item }).click()
}

let secret = ''

describe('endpoints', () => {
  it('start with an empty page', async () => {
    await page.goto(`/console/projects/${projectId}/endpoints`)
    await page.getByText('No endpoints', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'endpoints-empty')
  })

  it('are created by a form that shows what the server would reject, and show their secret once', async () => {
    await page.getByRole('button', { name: 'New endpoint' }).click()
    await dialog.getByLabel('Name').fill(`Orders ${hostile}`)
    await dialog.getByLabel('URL').fill('http://hooks.example.com')
    await dialog.getByText('This change is not allowed').waitFor()
    await dialog.getByText(/starts with https/).waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Create endpoint' }).isDisabled())
    await dialog.getByLabel('URL').fill(`${receiver.url}/orders`)
    await dialog.getByLabel('project.locked').check()
    await dialog.getByLabel('project.unlocked').check()
    await dialog.getByText('The endpoint receives 2 types of events.').waitFor()
    await picture(page, 'endpoint-new')
    await act('Create endpoint', 'They asked for it, ticket 12')
    secret = await takeSecret(page, /^whsec_/, 'endpoint-secret')
    const made = await only()
    assert.equal(made.name, `Orders ${hostile}`)
    assert.deepEqual(made.events, ['project.locked', 'project.unlocked'])
    assert.equal(secret.slice(-5, -1), made.secret_hint)
    await audited(admin, projectId, 'endpoints.create', 'They asked for it, ticket 12')
    await page.getByRole('heading', { name: `Orders ${hostile}` }).waitFor()
    await page.getByText('No attempts yet').waitFor()
    await page.getByText('no deliveries yet', { exact: true }).waitFor()
  })

  it('show the attempt of a test event without a reload, and the response as text', async () => {
    receiver.answer({ status: 200, body: `Thanks. ${hostile}` }, '/orders')
    // The page has to know the newest earlier attempt before the event is sent, however long that takes.
    await page.route(/attempts\?limit=1$/, async (route) => {
      await sleep(3000)
      await route.continue()
    })
    await page.getByRole('button', { name: 'Send test event' }).click()
    await act('Send test event', 'Does it work?')
    const [received] = await receiver.until(1, '/orders')
    assert.equal(received && verified(secret, received).type, 'endpoint.test')
    await attempts.getByRole('button', { name: 'endpoint.test' }).click()
    await page.getByText(`Thanks. ${hostile}`, { exact: true }).waitFor()
    await progressShows(/Test event sent. 1 attempt: 1 delivered./)
    await page.getByText('active', { exact: true }).waitFor()
    await page.getByRole('figure', { name: /Latency/ }).waitFor()
    await staysText(page)
    await audited(admin, projectId, 'endpoints.test', 'Does it work?')
    assert.deepEqual(await findings(page), [])
  })

  it('are edited as a whole, and no edit is lost', async () => {
    const { id } = await only()
    await page.getByRole('button', { name: 'Edit endpoint' }).click()
    // Grace edits first.
    const current = await only()
    await body(
      200,
      admin.patch(`${endpoints}/${id}`, {
        name: current.name,
        url: current.url,
        events: ['project.locked', 'project.unlocked', 'message.bounced'],
        is_active: true,
      }),
    )
    await dialog.getByLabel('Name').fill('Orders')
    await dialog.getByText('This was changed after you opened it').waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'endpoint-conflict')
    await dialog.getByRole('button', { name: 'Continue with my edits' }).click()
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'Orders')
    assert.ok(await dialog.getByLabel('message.bounced').isChecked())
    await act('Save changes', 'A name that can be read')
    await page.getByRole('heading', { name: 'Orders', exact: true }).waitFor()
    const now = await only()
    assert.deepEqual(now.events, ['message.bounced', 'project.locked', 'project.unlocked'])
    await audited(admin, projectId, 'endpoints.edit', 'A name that can be read')
  })

  it('replay one event or a time range, and show the progress', async () => {
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
    await page.getByRole('option', { name: 'Failed, will retry' }).click()
    await page.waitForURL(/outcome=failed/)
    await attempts.getByRole('button', { name: 'project.locked' }).first().click()
    await page.getByText('Out for lunch').waitFor()
    await page.getByText('failing', { exact: true }).waitFor()
    await page.getByText(/Status 503/).waitFor()

    receiver.answer({ status: 204 }, '/orders')
    await page.getByRole('button', { name: 'Replay this event' }).click()
    await act('Replay event', 'Their lunch is over')
    await progressShows(/Replay of one event started. \d+ attempts?: [1-9]/)
    await audited(admin, projectId, 'endpoints.replay', 'Their lunch is over')

    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await dialog.getByLabel('From (UTC)').fill(from.toISOString().slice(0, 19))
    await dialog.getByLabel('Undelivered only').uncheck()
    await dialog.getByText(/are redelivered gradually/).waitFor()
    await picture(page, 'endpoint-replay')
    await act('Replay events', 'They lost this morning')
    await progressShows(/Replay of events from .* started. [2-9] attempts:/)
    await audited(admin, projectId, 'endpoints.replay', 'They lost this morning')
    const { data } = await body<{ data: { event_type: string; outcome: string }[] }>(
      200,
      admin.get(`${endpoints}/${id}/attempts?outcome=delivered`),
    )
    assert.ok(data.some(({ event_type }) => event_type === 'project.unlocked'))
  })

  it('show a payload on request, and record the lookup', async () => {
    await page.getByRole('button', { name: 'Show payload' }).click()
    await page.getByRole('region', { name: 'Payload' }).getByText('"type": "project.locked"').waitFor()
    assert.deepEqual(await findings(page), [])
    const { data } = await body<{ data: { operation: string; project_ids: number[] }[] }>(
      200,
      admin.get('/admin/audit/lookups'),
    )
    assert.deepEqual(
      data.map(({ operation, project_ids }) => [operation, project_ids]),
      [['delivery-attempts.show', [projectId]]],
    )
  })

  it('fit, wide and narrow, light and dark', async () => {
    const { id } = await only()
    await checkScreens(
      session,
      'endpoint',
      `/console/projects/${projectId}/endpoints/${id}`,
      async (window) => {
        await window.getByRole('table', { name: 'Attempts' }).getByRole('button').first().click()
        await window.getByRole('button', { name: 'Replay this event' }).waitFor()
      },
    )
    await checkScreens(session, 'endpoints', `/console/projects/${projectId}/endpoints`, (window) =>
      window.getByRole('table', { name: 'Endpoints' }).waitFor(),
    )
  })

  it('show why they were deactivated, and are activated again', async () => {
    const { id } = await only()
    receiver.answer({ status: 410 }, '/orders')
    await body(202, admin.post(`${endpoints}/${id}/test`, {}))
    await eventually('the endpoint is inactive', async () => !(await only()).is_active)
    await page.goto(`/console/projects/${projectId}/endpoints/${id}`)
    await page.getByText('This endpoint is inactive').waitFor()
    await page.getByRole('alert').getByText(/410/).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'endpoint-off')
    await page.getByRole('button', { name: 'Activate' }).click()
    await act('Activate', 'They are back')
    await page.getByText('This endpoint is inactive').waitFor({ state: 'detached' })
    assert.ok((await only()).is_active)
    await audited(admin, projectId, 'endpoints.edit', 'They are back')
  })

  it('get a new secret, which is shown once', async () => {
    await more('Rotate secret')
    assert.ok(await dialog.getByRole('button', { name: 'Rotate secret' }).isDisabled())
    await act('Rotate secret', 'It was in a log')
    const next = await takeSecret(page, /^whsec_/, 'endpoint-rotated')
    assert.notEqual(next, secret)
    assert.equal((await only()).secret_hint, next.slice(-5, -1))
    await page.getByText(`whsec_…${next.slice(-5, -1)}`).waitFor()
    await audited(admin, projectId, 'endpoints.rotate', 'It was in a log')
  })

  it('are deleted using only the keyboard', async () => {
    await page.getByRole('button', { name: 'More… for this endpoint' }).focus()
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
