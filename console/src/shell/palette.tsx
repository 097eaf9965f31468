import { useHotkeys } from '@mantine/hooks'
import { lazy, Suspense, useEffect, useState } from 'react'
import { isDialogOpen } from '../components/is-dialog-open.ts'

const load = () => import('./palette-dialog.tsx')
const PaletteDialog = lazy(() => load().then((module) => ({ default: module.PaletteDialog })))

/** After the page itself; and so long before anybody types into it that no letter goes elsewhere. */
const loadsAfterMs = 1000

/** ⌘K or Ctrl-K, from within fields as well. */
export function usePalette() {
  const [isOpen, setIsOpen] = useState(false)
  const open = () => setIsOpen(true)
  const close = () => setIsOpen(false)
  const toggle = () => {
    if (isOpen) close()
    // Whoever is in the middle of a change would leave it behind.
    else if (!isDialogOpen()) open()
  }
  useHotkeys([['mod+K', toggle]], [])
  useEffect(() => {
    // Where it fails, opening it tries again.
    const timer = setTimeout(() => void load().catch(() => undefined), loadsAfterMs)
    return () => clearTimeout(timer)
  }, [])
  return { isOpen, open, close }
}

export function Palette({ isOpen, close }: { isOpen: boolean; close: () => void }) {
  return <Suspense>{isOpen && <PaletteDialog close={close} />}</Suspense>
}
