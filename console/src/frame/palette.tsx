import { useHotkeys } from '@mantine/hooks'
import { type ComponentType, Suspense, useEffect, useLayoutEffect, useState } from 'react'
import { isDialogOpen } from '../components/is-dialog-open.ts'
import { useReturnFocus } from '../components/use-return-focus.ts'

/** The text belongs to the palette, which collects what is typed before the dialog's field has the focus. */
export interface PaletteProps {
  typed: string
  setTyped: (text: string) => void
  close: () => void
}

export const paletteKeys = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ K' : 'Ctrl K'

/** Preloaded once the page has loaded. */
const preloadDelayMs = 1000

/** Opened with ⌘K or Ctrl-K, even while a field has the focus. `load` loads the dialog of the entrance. */
export function usePalette(load: () => Promise<unknown>) {
  const [isOpen, setIsOpen] = useState(false)
  const open = () => setIsOpen(true)
  const close = () => setIsOpen(false)
  const toggle = () => {
    if (isOpen) close()
    // An open dialog may contain an unfinished change.
    else if (!isDialogOpen()) open()
  }
  useHotkeys([['mod+K', toggle]], [])
  useEffect(() => {
    // If this fails, the palette is loaded again when it is opened.
    const timer = setTimeout(() => void load().catch(() => undefined), preloadDelayMs)
    return () => clearTimeout(timer)
  }, [load])
  return { isOpen, open, close }
}

export function Palette({
  isOpen,
  close,
  dialog,
}: {
  isOpen: boolean
  close: () => void
  /** Loaded on its first use. */
  dialog: ComponentType<PaletteProps>
}) {
  return isOpen && <OpenPalette close={close} dialog={dialog} />
}

function OpenPalette({ close, dialog: Dialog }: { close: () => void; dialog: ComponentType<PaletteProps> }) {
  const [typed, setTyped] = useState('')
  useEarlyKeys(setTyped, close)
  useReturnFocus()
  return (
    <Suspense>
      <Dialog typed={typed} setTyped={setTyped} close={close} />
    </Suspense>
  )
}

/** Collects the keys that are pressed after the palette is opened and before its field has the focus. */
function useEarlyKeys(setTyped: (update: (text: string) => string) => void, close: () => void): void {
  useLayoutEffect(() => {
    const collect = (event: KeyboardEvent) => {
      const isInDialog = event.target instanceof Element && event.target.closest('[role="dialog"]') !== null
      if (isInDialog || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
      if (event.key === 'Escape') close()
      else if (event.key === 'Backspace') setTyped((text) => text.slice(0, -1))
      else if (event.key.length === 1) setTyped((text) => text + event.key)
      else return
      event.preventDefault()
      event.stopPropagation()
    }
    window.addEventListener('keydown', collect, { capture: true })
    return () => window.removeEventListener('keydown', collect, { capture: true })
  }, [setTyped, close])
}
