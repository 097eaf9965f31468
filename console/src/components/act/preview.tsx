import { Alert, List, Loader, Stack, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { Preview } from '../../api/operations.gen.ts'
import { Changes } from '../changes.tsx'
import classes from './act.module.css'

/** What the server says would happen. */
export function PreviewOf({ query, isComplete }: { query: UseQueryResult<Preview>; isComplete: boolean }) {
  return (
    <section
      className={classes.preview}
      aria-label="What will happen"
      aria-live="polite"
      aria-busy={query.isFetching}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: long ones scroll, and the keyboard must be able to.
      tabIndex={0}
    >
      {said(query, isComplete)}
    </section>
  )
}

function said(query: UseQueryResult<Preview>, isComplete: boolean) {
  if (!isComplete) {
    return <Text c="dimmed">What will change is shown here once the fields are filled in.</Text>
  }
  if (query.error) {
    return (
      <Alert color="red" title="The server would refuse this">
        {query.error.message}
      </Alert>
    )
  }
  if (!query.data) return <Loader size="sm" role="status" aria-label="Asking what would happen" />
  const { changes, effects, warnings } = query.data
  return (
    <Stack gap="sm" opacity={query.isPlaceholderData ? 0.5 : 1}>
      {warnings.map((warning) => (
        <Alert key={warning} color="yellow" variant="light" classNames={{ message: classes.warning ?? '' }}>
          {warning}
        </Alert>
      ))}
      {changes.length > 0 && <Changes changes={changes} />}
      {effects.length > 0 && (
        <List size="sm" spacing={4}>
          {effects.map((effect) => (
            <List.Item key={effect}>{effect}</List.Item>
          ))}
        </List>
      )}
      {changes.length === 0 && effects.length === 0 && <Text c="dimmed">Nothing would change.</Text>}
    </Stack>
  )
}
