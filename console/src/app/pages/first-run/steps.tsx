import { Text, Title, VisuallyHidden } from '@mantine/core'
import type { ReactNode } from 'react'
import classes from './steps.module.css'

/** Things to do one after the other, each ticked when it is done. */
export const Steps = ({ children }: { children: ReactNode }) => <ol className={classes.steps}>{children}</ol>

export function Step({
  title,
  done,
  isOpen = true,
  children,
}: {
  title: string
  /** What was done, once it is. */
  done?: ReactNode
  /** Whether the step can be taken now. */
  isOpen?: boolean
  /** Shown while the step is not done. */
  children?: ReactNode
}) {
  const isDone = done !== undefined && done !== false
  return (
    <li
      className={classes.step}
      data-state={isDone ? 'done' : isOpen ? 'open' : 'later'}
      aria-current={!isDone && isOpen ? 'step' : undefined}
    >
      <span className={classes.mark} aria-hidden="true">
        {isDone && (
          <svg viewBox="0 0 24 24" width="14" height="14" aria-hidden="true">
            <path d="M5 12.5 10 17.5 19 7" />
          </svg>
        )}
      </span>
      <div className={classes.body}>
        <Title order={2} className={classes.title ?? ''}>
          {title}
          {isDone && <VisuallyHidden> (done)</VisuallyHidden>}
        </Title>
        {isDone ? (
          <Text size="sm" c="dimmed" component="div" className={classes.done ?? ''}>
            {done}
          </Text>
        ) : (
          isOpen && children
        )}
      </div>
    </li>
  )
}
