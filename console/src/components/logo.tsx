import { useBranding } from './installation.ts'
import classes from './logo.module.css'

/** The operator's logo and name or, without them, Postern's. A postern is a small door in a wall. */
export function Logo() {
  const { name, logo_url } = useBranding()
  return (
    <span className={classes.logo}>
      {logo_url === null ? (
        <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" className={classes.mark}>
          <rect width="32" height="32" rx="7" fill="var(--mantine-color-ink-7)" />
          <path
            d="M9 25V14a7 7 0 0 1 14 0v11"
            fill="none"
            stroke="#fff"
            strokeWidth="3"
            strokeLinecap="round"
          />
          <circle cx="19" cy="19" r="1.8" fill="#fff" />
        </svg>
      ) : (
        <img src={logo_url} alt="" className={classes.image} />
      )}
      <span className={classes.name}>{name}</span>
    </span>
  )
}
