import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ApiError } from '../api/api-error.ts'
import { Icon, type IconName } from './icon.tsx'
import { To } from './link.tsx'
import { useWindowTitle } from './page-head.tsx'
import { Sentence } from './sentence.tsx'
import classes from './states.module.css'

/** Renders a query's data, or shows that the query is loading, has failed or is out of date. */
export function QueryState<T>({
  query,
  rows = 4,
  children,
}: {
  query: UseQueryResult<T>
  /** How much space to reserve, so that the page does not jump. */
  rows?: number
  children: (data: T) => ReactNode
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && (
          <Text size="sm" c="dimmed" mb="xs" role="status">
            Out of date. <Sentence text={query.error.message} />
          </Text>
        )}
        {children(query.data)}
      </>
    )
  }
  if (query.error) return <Failed error={query.error} retry={() => void query.refetch()} />
  return <Loading rows={rows} />
}

export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <Stack gap="sm" py="sm" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={`row ${row.toString()}`} height={18} width={`${92 - (row % 3) * 14}%`} />
      ))}
    </Stack>
  )
}

export function Failed({ error, retry }: { error: Error; retry?: () => void }) {
  const isNotFound = error instanceof ApiError && error.status === 404
  return (
    <div className={classes.state} role="alert">
      <Title order={2}>{isNotFound ? 'Not found' : 'Something went wrong'}</Title>
      <Text c="dimmed">
        <Sentence text={error.message} />
      </Text>
      <Group>
        {retry && !isNotFound && (
          <Button variant="default" onClick={retry}>
            Try again
          </Button>
        )}
        {isNotFound && <To to="/">Go to the home page</To>}
      </Group>
    </div>
  )
}

export function PageNotFound() {
  useWindowTitle(1, 'Page not found')
  return (
    <div className={classes.state}>
      <Title order={1}>Page not found</Title>
      <To to="/">Go to the home page</To>
    </div>
  )
}

/** An empty list: what belongs here, and what to do next. */
export function Empty({
  title,
  icon,
  action,
  children,
}: {
  title: string
  icon?: IconName
  /** The button that adds the first entry. */
  action?: ReactNode
  children?: ReactNode
}) {
  return (
    <div className={classes.state}>
      {icon && (
        <span className={classes.icon}>
          <Icon name={icon} size={22} />
        </span>
      )}
      <Text fw={600}>{title}</Text>
      {children && (
        <Text c="dimmed" component="div" maw={480}>
          {children}
        </Text>
      )}
      {action && <div className={classes.action}>{action}</div>}
    </div>
  )
}
