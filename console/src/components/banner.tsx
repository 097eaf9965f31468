import type { ReactNode } from 'react'
import classes from './banner.module.css'

/** A failure that must not be overlooked, with a link to what can be done about it. */
export function Banner({ children, link }: { children: ReactNode; link?: ReactNode }) {
  return (
    <div className={classes.banner} role="alert">
      <p>{children}</p>
      {link}
    </div>
  )
}
