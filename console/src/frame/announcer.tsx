import { VisuallyHidden } from '@mantine/core'
import { useEffect, useState } from 'react'

/**
 * Announces the title of a page after a navigation, as a browser does when it loads a page. If the element with the
 * focus was on the previous page, the new page gets the focus: otherwise Tab would start at the top of the document.
 */
export function Announcer() {
  const [text, setText] = useState('')
  useEffect(() => {
    let path = window.location.pathname
    const onTitle = () => {
      // Until a page has loaded, the window has only the name of the product.
      if (window.location.pathname === path || !document.title.includes(' · ')) return
      path = window.location.pathname
      setText(document.title)
      if (document.activeElement === document.body) {
        document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true })
      }
    }
    const observer = new MutationObserver(onTitle)
    const title = document.querySelector('title')
    if (title) observer.observe(title, { childList: true })
    return () => observer.disconnect()
  }, [])
  return <VisuallyHidden aria-live="polite">{text}</VisuallyHidden>
}
