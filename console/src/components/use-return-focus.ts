import { useEffect, useState } from 'react'

/**
 * For a dialog that is rendered only while it is open: when it closes, the focus returns to the element that opened it
 * or, if that is gone, to the page. Mantine does this only for dialogs that are always rendered.
 */
export function useReturnFocus(): void {
  const [first] = useState(currentOpener)
  useEffect(() => {
    // If another dialog opened this one and closed, it has returned the focus by now.
    const opener = first?.isConnected ? first : currentOpener()
    return () => {
      // The next dialog, or a page that has just been opened, may have the focus already.
      if (document.activeElement !== document.body) return
      const target = opener?.isConnected ? opener : document.querySelector<HTMLElement>('main')
      target?.focus({ preventScroll: true })
    }
  }, [first])
}

/** The element with the focus or, if it is an item of a menu, which closes as well, the button of the menu. */
function currentOpener(): HTMLElement | null {
  const current = document.activeElement
  const button = current?.closest('[role="menu"]')?.getAttribute('aria-labelledby')
  if (button) return document.getElementById(button)
  return current instanceof HTMLElement && current !== document.body ? current : null
}
