import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { findings, picture } from './browser.ts'
import { dialogOf } from './dialog.ts'

/** Reads a secret from the dialog. The secret is shown once, copied and confirmed, and then removed from the page. */
export async function takeSecret(page: Page, form: RegExp, name: string): Promise<string> {
  const dialog = dialogOf(page)
  await dialog.getByText('This secret is shown only once').waitFor()
  const shown = dialog.getByText(form)
  const secret = String(await shown.textContent())
  assert.deepEqual(await findings(page), [])
  await page.keyboard.press('Escape')
  assert.ok(await shown.isVisible(), 'Escape does not close it')
  assert.equal(await dialog.getByRole('button', { name: 'Close' }).count(), 0)
  assert.ok(await dialog.getByRole('button', { name: 'Done' }).isDisabled())
  await dialog.getByRole('button', { name: 'Copy secret' }).click()
  await dialog.getByRole('button', { name: 'Copied' }).waitFor()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), secret)
  await picture(page, name)
  await dialog.getByLabel('I have stored it').check()
  await dialog.getByRole('button', { name: 'Done' }).click()
  await dialog.waitFor({ state: 'hidden' })
  const html = String(await page.evaluate('document.documentElement.outerHTML'))
  assert.ok(!html.includes(secret), 'the page does not contain the secret')
  return secret
}
