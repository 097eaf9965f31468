import type { Locator, Page } from 'playwright-core'
import { eventually } from '../../server/src/testing/harness/waiting.ts'
import type { Caller } from '../caller.ts'
import { body } from '../stage.ts'

/** The dialog for an administrative action. */
export const dialogOf = (page: Page): Locator => page.getByRole('dialog')

/** Enters the reason, if any, and clicks the submit button. */
export async function confirm(page: Page, button: string, reason?: string): Promise<void> {
  const dialog = dialogOf(page)
  if (reason !== undefined) await dialog.getByRole('textbox', { name: 'Reason' }).fill(reason)
  await dialog.getByRole('button', { name: button, exact: true }).click()
}

/**
 * Chooses an item from a menu that is opening, by keyboard. The menu takes the focus shortly after it appears, and a
 * key pressed before then has no effect, so the arrow key is pressed until the item has the focus.
 */
export async function chooseByKeyboard(page: Page, item: string): Promise<void> {
  const wanted = page.getByRole('menuitem', { name: item })
  await wanted.waitFor()
  await eventually(`the arrow reaches ${item}`, async () => {
    await page.keyboard.press('ArrowDown')
    return (await wanted.and(page.locator(':focus')).count()) === 1
  })
  await page.keyboard.press('Enter')
}

interface Entry {
  id: number
  operation: string
  resource_id: string
  reason: string | null
  limit_exception: { limit: string; value: number; count: number } | null
  related: { resource: string; id: string | number }[]
}

/** Waits until the project's newest audit entry has this operation and reason, and returns the entry. */
export const audited = (
  admin: Caller,
  projectId: number,
  operation: string,
  reason: string | null,
): Promise<Entry> =>
  eventually(`the audit contains ${operation}: ${reason}`, async () => {
    const { data } = await body<{ data: Entry[] }>(
      200,
      admin.get(`/admin/audit?project_id=${projectId}&limit=1`),
    )
    return data[0]?.operation === operation && data[0].reason === reason && data[0]
  })
