import { Alert } from '@mantine/core'

/** Warns that mail databases did not answer, so that results are missing. */
export function UnreachableCells({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null
  return (
    <Alert color="yellow" variant="light" role="status" mb="md" title="Results are missing">
      {names.length === 1 ? 'The mail database' : 'The mail databases'} {names.join(', ')} did not answer. Try
      again later.
    </Alert>
  )
}
