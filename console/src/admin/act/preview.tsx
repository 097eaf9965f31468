import { Alert, List, Loader, Stack, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { Preview } from '../../api/operations.gen.ts'
import { Sentence } from '../../components/sentence.tsx'
import { ImportReportTable } from '../../resources/suppressions/import-report.tsx'
import { Changes } from '../components/changes.tsx'
import classes from './act.module.css'
import { Sample } from './sample.tsx'

/** The server's preview of a mutation. */
export function PreviewPanel({ query, isComplete }: { query: UseQueryResult<Preview>; isComplete: boolean }) {
  return (
    <section
      className={classes.preview}
      aria-label="Preview"
      aria-live="polite"
      aria-busy={query.isFetching}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a long preview must be scrollable by keyboard.
      tabIndex={0}
    >
      {contentOf(query, isComplete)}
    </section>
  )
}

function contentOf(query: UseQueryResult<Preview>, isComplete: boolean) {
  if (!isComplete) {
    return <Text c="dimmed">Fill in the fields to see what will change.</Text>
  }
  if (query.error) {
    return (
      <Alert color="red" title="This change is not allowed">
        <Sentence text={query.error.message} />
      </Alert>
    )
  }
  if (!query.data) return <Loader size="sm" role="status" aria-label="Loading preview" />
  const { changes, effects, warnings, report, bulk } = query.data
  return (
    <Stack gap="sm" opacity={query.isPlaceholderData ? 0.5 : 1}>
      {warnings.map((warning) => (
        <Alert key={warning} color="yellow" variant="light" classNames={{ message: classes.warning ?? '' }}>
          <Sentence text={warning} />
        </Alert>
      ))}
      {changes.length > 0 && !report && !bulk && <Changes changes={changes} />}
      {effects.length > 0 && (
        <List size="sm" spacing={4}>
          {effects.map((effect) => (
            <List.Item key={effect}>
              <Sentence text={effect} />
            </List.Item>
          ))}
        </List>
      )}
      {bulk && <Sample of={bulk.sample} />}
      {changes.length === 0 && effects.length === 0 && <Text c="dimmed">No changes.</Text>}
      {report && <ImportReportTable report={report} />}
    </Stack>
  )
}
