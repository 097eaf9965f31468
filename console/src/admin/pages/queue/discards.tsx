import { Button, Group, Progress, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { call } from '../../../api/client.ts'
import type { Discard } from '../../../api/operations.gen.ts'
import { Can } from '../../../components/can.tsx'
import { number } from '../../../components/numbers.ts'
import { ExactTime } from '../../../components/relative-time.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { minuteOf, type Zone, zoneName } from '../../../components/zone.ts'
import { useAct } from '../../act/use-act.tsx'
import { resumeDiscard, stopDiscard } from './acts.tsx'

const runningPollMs = 1000
const stoppedPollMs = 10_000
const shown = 3

/** The last discards of a project, with the progress of the one that runs. */
export function Discards({ projectId }: { projectId: number }) {
  const path = { project_id: projectId }
  const query = useQuery({
    queryKey: ['discards.list', path],
    queryFn: ({ signal }) => call('discards.list', { path, query: { limit: shown }, signal }),
    refetchInterval: ({ state }) => {
      const statuses = state.data?.data.map(({ status }) => status) ?? []
      if (statuses.includes('running')) return runningPollMs
      return statuses.includes('stopped') ? stoppedPollMs : false
    },
  })
  const discards = query.data?.data ?? []
  if (discards.length === 0) return null
  return (
    <Stack gap="sm" mt="lg">
      {discards.map((discard) => (
        <DiscardProgress key={discard.id} discard={discard} />
      ))}
    </Stack>
  )
}

function DiscardProgress({ discard }: { discard: Discard }) {
  const start = useAct()
  const { status, created_at } = discard
  const share = shareOf(discard)
  const zone = useZone()
  return (
    <div>
      <Group justify="space-between" gap="xs" wrap="nowrap" align="flex-start">
        <Text size="sm" role="status" style={{ overflowWrap: 'anywhere' }}>
          {states[status]}. Discarded: {progressOf(discard)}
          {filterOf(discard, zone)}
        </Text>
        {status === 'running' && (
          <Can change="discards.stop">
            <Button size="compact-sm" variant="default" onClick={() => start(stopDiscard(discard))}>
              Stop
            </Button>
          </Can>
        )}
        {status === 'stopped' && (
          <Can change="discards.resume">
            <Button size="compact-sm" variant="default" onClick={() => start(resumeDiscard(discard))}>
              Resume
            </Button>
          </Can>
        )}
      </Group>
      {status !== 'finished' && share !== null && (
        <Progress value={share} mt={6} size="sm" aria-label="Discarded" />
      )}
      <Text size="sm" c="dimmed">
        Started <ExactTime at={created_at} />
      </Text>
    </div>
  )
}

const states: Record<Discard['status'], string> = {
  running: 'Discarding in progress',
  stopped: 'Discarding stopped',
  finished: 'Discarding finished',
}

/** In percent. Null if it is not known. */
const shareOf = ({ matched, discarded }: Discard): number | null =>
  matched === null || discarded === null
    ? null
    : matched === 0
      ? 100
      : Math.min(100, (100 * discarded) / matched)

/** "3 of 10". The total is null if it could not be counted. */
const progressOf = ({ matched, discarded }: Discard): string =>
  `${discarded === null ? 'unknown' : number(discarded)}${matched === null ? '' : ` of ${number(matched)}`}`

/** " (tag sale, domain example.net)". */
function filterOf({ tag, recipient_domain, older_than }: Discard, zone: Zone): string {
  const parts = [
    tag && `tag ${tag}`,
    recipient_domain && `domain ${recipient_domain}`,
    older_than && `accepted before ${minuteOf(older_than, zone)} ${zoneName(older_than, zone)}`,
  ].filter(Boolean)
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}
