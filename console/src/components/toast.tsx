import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from 'react'
import classes from './toast.module.css'

const ToastContext = createContext<(text: string) => void>(() => undefined)

/**
 * `toast('Project locked')`: a line at the edge of the page that disappears automatically and is read by screen
 * readers.
 */
export const useToast = () => useContext(ToastContext)

const shownMs = 4000

export function ToastProvider({ children }: { children: ReactNode }) {
  const [text, setText] = useState('')
  const timer = useRef(0)
  const toast = useCallback((next: string) => {
    window.clearTimeout(timer.current)
    setText(next)
    timer.current = window.setTimeout(() => setText(''), shownMs)
  }, [])
  return (
    <ToastContext value={toast}>
      {children}
      <output className={classes.toast} data-shown={text !== '' || undefined}>
        {text}
      </output>
    </ToastContext>
  )
}
