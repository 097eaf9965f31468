/** The link, or the button, that opens a row. */
const openerOf = (row: Element | null | undefined): HTMLElement | null =>
  row?.querySelector<HTMLElement>(':scope > td:first-child :is(a, button)') ?? null

/** The row that was opened last: after returning from its page, the next key starts there. */
let lastHref: string | null = null

export function rememberRow(target: EventTarget): void {
  if (target instanceof Element) lastHref = openerOf(target.closest('tr'))?.getAttribute('href') ?? lastHref
}

/** Moves the focus to the next (1) or previous (-1) row, in the lists of the page or in one of them. */
export function moveBetweenRows(step: 1 | -1, within: ParentNode = document): boolean {
  const rows = [...within.querySelectorAll('main [data-rows] > tr:not([data-below])')]
  const openers = rows.map(openerOf).filter((opener) => opener?.checkVisibility())
  const current = document.activeElement?.closest('[data-rows] > tr')
  const at = current ? openers.indexOf(openerOf(current)) : -1
  const last = openers.find((opener) => lastHref !== null && opener?.getAttribute('href') === lastHref)
  const next = at < 0 ? (last ?? openers[0]) : openers[at + step]
  next?.focus()
  return next !== undefined
}

/** Selects the row with the focus, in a list with checkboxes. */
export function selectRow(): void {
  const row = document.activeElement?.closest('[data-rows] > tr')
  row?.querySelector<HTMLInputElement>('input[type="checkbox"]:not(:disabled)')?.click()
}
