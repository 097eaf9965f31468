import { Alert, Text } from '@mantine/core'
import type { Domain } from '../../api/operations.gen.ts'
import { RelativeTime } from '../../components/relative-time.tsx'

/** The state of verification. The page polls the domain. */
export function Verification({ domain: { status, last_checked_at, last_check_error } }: { domain: Domain }) {
  const [colour, title, advice] = texts[status]
  const isHealthy = status === 'verified' && last_check_error === null
  return (
    <Alert color={isHealthy ? 'green' : colour} title={title} role="status" variant="light">
      <Text size="sm" c="var(--mantine-color-text)">
        {isHealthy || status !== 'verified'
          ? advice
          : 'Can still send. Sending stops 3 days after a record goes missing.'}{' '}
        Last checked: <RelativeTime at={last_checked_at} />.
      </Text>
      {last_check_error !== null && (
        <Text size="sm" mt={4} c="var(--mantine-color-text)" style={{ overflowWrap: 'anywhere' }}>
          <b>Missing:</b> {last_check_error}
        </Text>
      )}
    </Alert>
  )
}

const texts: Record<Domain['status'], [colour: string, title: string, advice: string]> = {
  pending: [
    'yellow',
    'Waiting for DNS records',
    'Cannot send yet. DNS is checked after 1, 2, 4 … minutes, and this page updates automatically.',
  ],
  verified: ['yellow', 'Verified', 'Can send.'],
  failed: ['red', 'Verification failed', 'Cannot send. Publish the records below, then choose “Check now”.'],
}
