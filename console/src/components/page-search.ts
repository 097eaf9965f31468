/** The search or the filters of the page: the first field, or the button that shows the filters in a narrow window. */
const search = 'main :is(search, [role="search"])'
const fields = `${search} :is(input:not([type="hidden"]), textarea, button)`

export function focusPageSearch(): void {
  const first = [...document.querySelectorAll<HTMLElement>(fields)].find((one) => one.checkVisibility())
  first?.focus()
  if (first instanceof HTMLInputElement) first.select()
}

/** Escape leaves a field of the search, so that shortcuts work again. An open list of options handles Escape itself. */
export function leavePageSearch({ key, target }: KeyboardEvent): void {
  if (key !== 'Escape' || !(target instanceof HTMLElement)) return
  if (target.closest(search) && target.getAttribute('aria-expanded') !== 'true') target.blur()
}
