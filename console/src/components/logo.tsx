import classes from './logo.module.css'

/** A postern is a small door in a wall. */
export function Logo() {
  return (
    <span className={classes.logo}>
      <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#2f4fd0" />
        <path
          d="M9 25V14a7 7 0 0 1 14 0v11"
          fill="none"
          stroke="#fff"
          strokeWidth="3"
          strokeLinecap="round"
        />
        <circle cx="19" cy="19" r="1.8" fill="#fff" />
      </svg>
      Postern
    </span>
  )
}
