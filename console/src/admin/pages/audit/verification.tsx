import { Alert, Button, Group, List, Loader, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { call } from '../../../api/client.ts'
import type { AuditVerification } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { To } from '../../../components/link.tsx'
import { counted } from '../../../components/numbers.ts'
import { Failed } from '../../../components/states.tsx'
import classes from './verification.module.css'

/** Several million entries take a minute. */
const timeoutMs = 600_000

/**
 * Verifies the hash chain. A single project's chain is short and is verified when the page opens. All chains together
 * are verified only on request.
 */
export function Verification({ projectId }: { projectId?: number }) {
  const isAll = projectId === undefined
  const query = useQuery({
    queryKey: ['audit.verify', projectId],
    queryFn: ({ signal }) =>
      call('audit.verify', { query: isAll ? {} : { project_id: projectId }, signal, timeoutMs }),
    enabled: !isAll,
    // Repeated only on request.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    meta: { skipRefetch: true },
  })
  return (
    <section className={classes.verification} aria-label="Verification" aria-busy={query.isFetching}>
      <Group gap="sm" justify="space-between">
        <Group gap="sm" role="status">
          <Result query={query} isAll={isAll} />
        </Group>
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => void query.refetch()}
          disabled={query.isFetching}
        >
          {query.data ? 'Verify again' : 'Verify'}
        </Button>
      </Group>
      {query.error && !query.isFetching && <Failed error={query.error} />}
      {query.data && !query.isFetching && <Findings found={query.data} />}
    </section>
  )
}

function Result({
  query: { data, isFetching, error },
  isAll,
}: {
  query: { data: AuditVerification | undefined; isFetching: boolean; error: Error | null }
  isAll: boolean
}) {
  if (isFetching) {
    return (
      <>
        <Loader size="xs" />
        <Text size="sm">
          {isAll
            ? 'Verifying every entry. Several million entries take about a minute.'
            : 'Verifying every entry.'}
        </Text>
      </>
    )
  }
  if (error) return <Text size="sm">Verification did not finish.</Text>
  if (!data) {
    return (
      <Text size="sm" c="dimmed">
        Re-reads every entry and checks that none has been altered.
      </Text>
    )
  }
  const { ok, signed, rows, checkpoints } = data
  return (
    <>
      <Badge tone={ok ? 'good' : 'bad'}>{ok ? 'intact' : 'not intact'}</Badge>
      {ok && <Badge tone={signed ? 'good' : 'warn'}>{signed ? 'signed' : 'not signed yet'}</Badge>}
      <Text size="sm">
        {counted(rows, 'entry', 'entries')} verified, {counted(checkpoints, 'signed checkpoint')}
      </Text>
    </>
  )
}

function Findings({ found: { ok, signed, first_bad, notes, erased } }: { found: AuditVerification }) {
  const notices = [
    ...(ok && !signed
      ? [
          'Checkpoints are signed every minute. Entries after the last checkpoint are protected by hashes only.',
        ]
      : []),
    ...(erased > 0
      ? [`Personal data was erased ${counted(erased, 'time')}. The audit log records each erasure.`]
      : []),
    ...notes,
  ]
  return (
    <>
      {first_bad && (
        <Alert color="red" title="First altered entry" role="alert" mt="sm">
          <Text size="sm">{first_bad.problem}</Text>
          <BadEntryLink chain={first_bad.chain} seq={first_bad.seq} />
        </Alert>
      )}
      {notices.length > 0 && (
        <List size="sm" c="dimmed" mt="xs">
          {notices.map((notice) => (
            <List.Item key={notice}>{notice}</List.Item>
          ))}
        </List>
      )}
    </>
  )
}

/**
 * Links to the entry. Only its chain and position are known, so if it is not among the newest entries, this links to
 * the chain.
 */
function BadEntryLink({ chain, seq }: { chain: number | null; seq: number | null }) {
  const isKnown = chain !== null && seq !== null
  const newest = useAnswer(
    'audit.list',
    { query: { project_id: chain ?? 0, limit: 200 } },
    { isEnabled: isKnown },
  )
  if (!isKnown) return null
  const entry = newest.data?.data.find((one) => one.seq === seq)
  return entry ? (
    <To to="/audit/$id" params={{ id: String(entry.id) }}>
      View entry {seq} of chain {chain}
    </To>
  ) : (
    <To to="/audit" search={{ project_id: chain }}>
      View chain {chain} (entry {seq})
    </To>
  )
}
