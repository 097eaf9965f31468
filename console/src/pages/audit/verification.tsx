import { Alert, Button, Group, List, Loader, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import type { AuditVerification } from '../../api/operations.gen.ts'
import { useAnswer } from '../../api/queries.ts'
import { Badge } from '../../components/badge.tsx'
import { number } from '../../components/figures.tsx'
import { To } from '../../components/link.tsx'
import { Failed } from '../../components/states.tsx'
import classes from './verification.module.css'

/** Some million rows take a minute. */
const patienceMs = 600_000

/**
 * Whether the audit is as it was written. The chain of one project is short, and looked at as the page opens; all of
 * them only when somebody asks.
 */
export function Verification({ projectId }: { projectId?: number }) {
  const isAll = projectId === undefined
  const query = useQuery({
    queryKey: ['audit.verify', projectId],
    queryFn: ({ signal }) =>
      call('audit.verify', { query: isAll ? {} : { project_id: projectId }, signal, patienceMs }),
    enabled: !isAll,
    // To read every row again is the operator's to ask for.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    meta: { stays: true },
  })
  return (
    <section className={classes.verification} aria-label="Verification" aria-busy={query.isFetching}>
      <Group gap="sm" justify="space-between">
        <Group gap="sm" role="status">
          <Said query={query} isAll={isAll} />
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

function Said({
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
            ? 'Reading every row again. Some million rows take about a minute.'
            : 'Reading every row again.'}
        </Text>
      </>
    )
  }
  if (error) return <Text size="sm">Nobody knows whether the chain is intact.</Text>
  if (!data) {
    return (
      <Text size="sm" c="dimmed">
        Reads every row again, and tells whether each is as it was written.
      </Text>
    )
  }
  const { ok, signed, rows, checkpoints } = data
  return (
    <>
      <Badge tone={ok ? 'good' : 'bad'}>{ok ? 'intact' : 'not intact'}</Badge>
      {ok && <Badge tone={signed ? 'good' : 'warn'}>{signed ? 'signed' : 'not signed yet'}</Badge>}
      <Text size="sm">
        {count(rows, 'row')} read, {count(checkpoints, 'signed checkpoint')}
      </Text>
    </>
  )
}

const count = (of: number, what: string): string => `${number(of)} ${what}${of === 1 ? '' : 's'}`

function Findings({ found: { ok, signed, first_bad, notes, erased } }: { found: AuditVerification }) {
  const remarks = [
    ...(ok && !signed
      ? ['Checkpoints are signed every minute. Until one covers these rows, hashes alone vouch for them.']
      : []),
    ...(erased > 0 ? [`Personal data was erased ${count(erased, 'time')}, as the audit records.`] : []),
    ...notes,
  ]
  return (
    <>
      {first_bad && (
        <Alert color="red" title="The first thing that is wrong" role="alert" mt="sm">
          <Text size="sm">{first_bad.problem}</Text>
          <BadRow chain={first_bad.chain} seq={first_bad.seq} />
        </Alert>
      )}
      {remarks.length > 0 && (
        <List size="sm" c="dimmed" mt="xs">
          {remarks.map((remark) => (
            <List.Item key={remark}>{remark}</List.Item>
          ))}
        </List>
      )}
    </>
  )
}

/** Rows are found by their id, and this one is known by its place: where it is not among the newest, the chain is shown. */
function BadRow({ chain, seq }: { chain: number | null; seq: number | null }) {
  const isKnown = chain !== null && seq !== null
  const newest = useAnswer(
    'audit.list',
    { query: { project_id: chain ?? 0, limit: 200 } },
    { isWanted: isKnown },
  )
  if (!isKnown) return null
  const row = newest.data?.data.find((entry) => entry.seq === seq)
  return row ? (
    <To to="/audit/$id" params={{ id: String(row.id) }}>
      Show row {seq} of chain {chain}
    </To>
  ) : (
    <To to="/audit" search={{ project_id: chain }}>
      Show chain {chain}, of which it is row {seq}
    </To>
  )
}
