import { type RefObject, useEffect, useEffectEvent, useRef } from 'react'
import { isDialogOpen } from './is-dialog-open.ts'

export interface Shortcut {
  /** One key, or two keys that are pressed one after the other: `/`, `g p`. */
  keys: string
  label: string
  group: string
  run: () => void
}

/** The shortcuts of the components on the page. */
const registered = new Set<RefObject<Shortcut[]>>()

export const activeShortcuts = (): Shortcut[] => [...registered].flatMap(({ current }) => current)

/** Shortcuts of a component, while it is on the page. They do nothing while the user types or a dialog is open. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  const latest = useRef(shortcuts)
  useEffect(() => {
    latest.current = shortcuts
  })
  useEffect(() => {
    registered.add(latest)
    return () => void registered.delete(latest)
  }, [])
}

/** Longer than the pause between two keys of a shortcut. */
const sequenceMs = 1500

/** Handles the keys of all shortcuts. Used once, by the shell. */
export function useShortcutKeys(isOn: boolean): void {
  const pressed = useRef({ keys: '', at: 0 })
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (!isOn || !isForShortcuts(event)) return
    const { keys: before, at } = pressed.current
    const isSequence = before !== '' && event.timeStamp - at < sequenceMs
    const keys = isSequence ? `${before} ${event.key.toLowerCase()}` : event.key.toLowerCase()
    pressed.current = { keys: '', at: 0 }
    const all = activeShortcuts()
    const shortcut = all.findLast((one) => one.keys === keys)
    if (shortcut) {
      event.preventDefault()
      shortcut.run()
    } else if (all.some((one) => one.keys.startsWith(`${keys} `))) {
      pressed.current = { keys, at: event.timeStamp }
    }
  })
  useEffect(() => {
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

/** Elements in which keys have another meaning. */
const owners =
  'input:not([type="checkbox"], [type="radio"]), textarea, select, [contenteditable], [role="menu"], [role="listbox"]'

function isForShortcuts(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing)
    return false
  // A shift key between the two keys of a shortcut, for example.
  if (event.key.length !== 1 || isDialogOpen()) return false
  return !(event.target instanceof Element && event.target.closest(owners))
}
