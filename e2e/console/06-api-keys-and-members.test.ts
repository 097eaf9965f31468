import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Caller } from '../caller.ts'
import { body, makePlan } from '../stage.ts'
import { openAdminSession } from './admin-session.ts'
import { findings, picture, staysText } from './browser.ts'
import { audited, chooseByKeyboard, confirm, dialogOf } from './dialog.ts'
import { takeSecret } from './secret.ts'
import { makeProject } from './seed.ts'
import { checkScreens } from './visual-checks.ts'

/** Creates, edits and removes a project's API keys and members. */
const session = await openAdminSession()
const { admin, ada, grace } = session
/** Markup in a name. */
const hostile = `<img src=x onerror="document.title='owned'">`
await session.postern('admin', 'create', '--email', 'mallory@example.com', '--name', hostile)
const { id: planId } = await makePlan(admin, { max_users: 2 })
const { id: projectId } = await makeProject(admin, ada.id, planId, 'Acme')
const api = `/admin/projects/${projectId}`
const { id: domainId } = await body<{ id: number }>(
  201,
  admin.post(`${api}/domains`, { name: 'shop.example.org', mta_provider: 'service' }),
)
const page = await session.browser.enter(ada)
const dialog = dialogOf(page)

interface ApiKey {
  id: number
  name: string
  prefix: string
  scopes: string[]
  domain_id: number | null
  allowed_ips: string[]
  expires_at: string | null
  is_active: boolean
}

interface Member {
  id: number
  email: string
  name: string | null
  role: string
  joined_at: string | null
}

const keys = async () => (await body<{ data: ApiKey[] }>(200, admin.get(`${api}/api-keys`))).data
const members = async () => (await body<{ data: Member[] }>(200, admin.get(`${api}/members`))).data
const memberOf = async (email: string) => (await members()).find((member) => member.email === email)

/** Enters the reason in the open dialog, checks it with axe, and submits. */
async function act(button: string, reason: string): Promise<void> {
  await dialog.getByRole('textbox', { name: 'Reason' }).fill(reason)
  await dialog.getByRole('button', { name: button, exact: true }).and(page.locator(':enabled')).waitFor()
  assert.deepEqual(await findings(page), [])
  await confirm(page, button)
}

async function choose(label: string, option: string | RegExp): Promise<void> {
  await dialog.getByRole('combobox', { name: label }).click()
  await page.getByRole('option', { name: option }).click()
}

/** Uses the menu at the end of a row. */
async function more(of: string, item: string): Promise<void> {
  await page.getByRole('button', { name: `More for ${of}`, exact: true }).click()
  await page.getByRole('menuitem', { name: item }).click()
}

let secret = ''

describe('API keys', () => {
  it('start with an empty page', async () => {
    await page.goto(`/console/projects/${projectId}/api-keys`)
    await page.getByText('No API keys', { exact: true }).waitFor()
    assert.deepEqual(await findings(page), [])
    await picture(page, 'api-keys-empty')
  })

  it('are created for test or live mode, and show their secret once', async () => {
    await page.getByRole('button', { name: 'New API key' }).click()
    await dialog.getByLabel('Test').check()
    await dialog.getByLabel('Name').fill(`Shop ${hostile}`)
    await dialog.getByLabel('domains:read').check()
    await choose('Domain', 'shop.example.org')
    await dialog.getByText(/is not verified: the key cannot send until it is/).waitFor()
    await dialog.getByText(/This is a test key/).waitFor()
    await dialog.getByLabel('Allowed IP addresses').pressSequentially('127.0.0.1,')
    await dialog.getByLabel('Allowed IP addresses').fill('192.0.2.0/33')
    await dialog.getByLabel('Allowed IP addresses').press('Enter')
    await dialog.getByText(/contains "192.0.2.0\/33", which is not an IP address/).waitFor()
    await picture(page, 'api-key-refused')
    await dialog.getByLabel('Allowed IP addresses').press('Backspace')
    await dialog.getByLabel('Expires (UTC)').fill('2099-01-01T00:00:00')
    await act('Create API key', 'Ticket 4711')
    secret = await takeSecret(page, /^pk_test_/, 'api-key-secret')
    const [key] = await keys()
    assert.ok(key && secret.startsWith(key.prefix))
    assert.deepEqual(
      {
        name: key.name,
        scopes: key.scopes,
        domain: key.domain_id,
        from: key.allowed_ips,
        until: key.expires_at,
      },
      {
        name: `Shop ${hostile}`,
        scopes: ['messages:send', 'domains:read'],
        domain: domainId,
        from: ['127.0.0.1'],
        until: '2099-01-01T00:00:00.000Z',
      },
    )
    await audited(admin, projectId, 'api-keys.create', 'Ticket 4711')
    await body(200, new Caller(session.url, secret).get(`/projects/${projectId}/domains`))
    await page.getByRole('button', { name: `Shop ${hostile}`, exact: true }).waitFor()
    await staysText(page)
  })

  it('are edited as a whole, and other fields keep their values', async () => {
    await page.getByRole('button', { name: `Shop ${hostile}`, exact: true }).click()
    await dialog.getByLabel('Name').fill('Web shop')
    await dialog.getByLabel('Active').uncheck()
    await dialog.getByText('Requests with this key are rejected immediately.').waitFor()
    await act('Save changes', 'They do not know who has it')
    await page.getByRole('button', { name: 'Web shop', exact: true }).waitFor()
    const [key] = await keys()
    assert.deepEqual([key?.name, key?.is_active, key?.domain_id], ['Web shop', false, domainId])
    assert.equal(key?.expires_at, '2099-01-01T00:00:00.000Z')
    await audited(admin, projectId, 'api-keys.edit', 'They do not know who has it')
    assert.equal((await new Caller(session.url, secret).get(`/projects/${projectId}/domains`)).status, 401)
    await page.getByText('inactive', { exact: true }).waitFor()
  })

  it('fit, wide and narrow, light and dark', async () => {
    await checkScreens(session, 'api-keys', `/console/projects/${projectId}/api-keys`, (window) =>
      window.getByRole('table', { name: 'API keys' }).waitFor(),
    )
  })

  it('get a new secret, which is shown once', async () => {
    await more('Web shop', 'Rotate secret')
    await act('Rotate secret', 'It was in a log')
    const next = await takeSecret(page, /^pk_test_/, 'api-key-rotated')
    assert.notEqual(next, secret)
    assert.ok(next.startsWith((await keys())[0]?.prefix ?? '?'))
    await audited(admin, projectId, 'api-keys.rotate', 'It was in a log')
  })

  it('are deleted using only the keyboard', async () => {
    await page.getByRole('button', { name: 'More for Web shop' }).focus()
    await page.keyboard.press('Enter')
    await chooseByKeyboard(page, 'Delete API key')
    await dialog.getByRole('textbox', { name: 'Reason' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.type('The program is gone')
    await dialog.getByRole('button', { name: 'Delete API key' }).and(page.locator(':enabled')).waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('No API keys', { exact: true }).waitFor()
    assert.deepEqual(await keys(), [])
    await audited(admin, projectId, 'api-keys.delete', 'The program is gone')
  })
})

describe('members', () => {
  it('start with the owner, and explain how to change the owner', async () => {
    await page.goto(`/console/projects/${projectId}/members`)
    await page.getByText('1 of 2 members in the plan').waitFor()
    await page.getByText('Change the owner in project settings.').waitFor()
    await page.getByRole('button', { name: ada.email, exact: true }).click()
    await dialog.getByRole('combobox', { name: 'Owner' }).waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await page.getByRole('button', { name: `More for ${ada.email}` }).count(), 0)
  })

  it('are added or invited, and can exceed the plan’s limit only with a reason', async () => {
    const add = async (email: string, role: RegExp) => {
      await page.getByRole('button', { name: 'New member' }).click()
      await dialog.getByLabel('Email').fill(email)
      await choose('Role', role)
    }
    await add('mallory@example.com', /^Viewer/)
    await dialog.getByText('The account with this address becomes a member immediately.').waitFor()
    await confirm(page, 'Add member')
    await page.getByRole('button', { name: 'mallory@example.com', exact: true }).waitFor()
    await page.getByText(hostile, { exact: true }).waitFor()
    assert.equal((await memberOf('mallory@example.com'))?.role, 'viewer')
    await audited(admin, projectId, 'members.create', null)

    await add('linus@example.org', /^Developer/)
    await dialog.getByText(/This exceeds the limit max_users/).waitFor()
    await dialog.getByText('Enter a reason.', { exact: true }).waitFor()
    assert.ok(await dialog.getByRole('button', { name: 'Add member' }).isDisabled())
    await picture(page, 'member-past-limit')
    await act('Add member', 'Agreed with sales')
    await page.getByRole('button', { name: 'linus@example.org', exact: true }).waitFor()
    await page.getByText('invited', { exact: true }).waitFor()
    const entry = await audited(admin, projectId, 'members.create', 'Agreed with sales')
    assert.deepEqual(entry.limit_exception, { limit: 'max_users', value: 2, count: 3 })

    await add(grace.email, /^Admin/)
    await act('Add member', 'Our own support')
    await page.getByRole('button', { name: grace.email, exact: true }).waitFor()
    await add(grace.email, /^Admin/)
    await dialog.getByText('This change is not allowed').waitFor()
    await page.keyboard.press('Escape')
    await staysText(page)
  })

  it('fit, wide and narrow, light and dark', async () => {
    await checkScreens(session, 'members', `/console/projects/${projectId}/members`, (window) =>
      window.getByRole('table', { name: 'Members' }).waitFor(),
    )
  })

  it('get a new role', async () => {
    await page.getByRole('button', { name: grace.email, exact: true }).click()
    await choose('Role', /^Viewer/)
    await dialog.getByText("The role viewer applies from the person's next request.").waitFor()
    await act('Change role', 'She only looks')
    await dialog.waitFor({ state: 'hidden' })
    assert.equal((await memberOf(grace.email))?.role, 'viewer')
    await audited(admin, projectId, 'members.edit', 'She only looks')
  })

  it('are removed', async () => {
    await more('linus@example.org', 'Remove member')
    await act('Remove member', 'Has left the company')
    await page.getByRole('button', { name: 'linus@example.org', exact: true }).waitFor({ state: 'detached' })
    assert.equal(await memberOf('linus@example.org'), undefined)
    await audited(admin, projectId, 'members.delete', 'Has left the company')
  })
})
