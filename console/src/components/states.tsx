import { Button, Skeleton, Stack, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Refusal } from '../api/answer.ts'
import classes from './states.module.css'

/** What was asked for, once it is there. Until then, where it is not to be had, and where it is old, says so. */
export function Asked<T>({
  query,
  rows = 4,
  children,
}: {
  query: UseQueryResult<T>
  /** How much room the answer will take, so that the page does not jump. */
  rows?: number
  children: (data: T) => ReactNode
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && (
          <Text size="sm" c="dimmed" mb="xs" role="status">
            Not up to date: {query.error.message}
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
  const isGone = error instanceof Refusal && error.status === 404
  return (
    <div className={classes.state} role="alert">
      <Text fw={600}>{isGone ? 'There is no such thing' : 'This did not work'}</Text>
      <Text c="dimmed">{error.message}</Text>
      {retry && !isGone && (
        <Button variant="default" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  )
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={classes.state}>
      <Text fw={600}>{title}</Text>
      {children && (
        <Text c="dimmed" component="div">
          {children}
        </Text>
      )}
    </div>
  )
}
