import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from 'react'
import classes from './told.module.css'

const Telling = createContext<(sentence: string) => void>(() => undefined)

/** `tell('Done: Lock Acme')`: a line at the edge of the page that goes by itself, and is read out. */
export const useTell = () => useContext(Telling)

const staysMs = 4000

export function Told({ children }: { children: ReactNode }) {
  const [sentence, setSentence] = useState('')
  const timer = useRef(0)
  const tell = useCallback((text: string) => {
    window.clearTimeout(timer.current)
    setSentence(text)
    timer.current = window.setTimeout(() => setSentence(''), staysMs)
  }, [])
  return (
    <Telling value={tell}>
      {children}
      <output className={classes.told} data-shown={sentence !== '' || undefined}>
        {sentence}
      </output>
    </Telling>
  )
}
