import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import type { Intervention } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { ExactAndRelativeTime } from '../../../components/relative-time.tsx'
import { kinds, strictestFirst } from '../../../resources/interventions/kinds.ts'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { editIntervention, endIntervention } from './acts.tsx'
import { Appeal } from './appeal.tsx'
import { Starter } from './starter.tsx'

/** Interventions also end automatically, and customers appeal. */
const pollMs = 10_000

export const useInForce = (projectId: number) =>
  useAnswer(
    'interventions.list',
    { path: { project_id: projectId }, query: { in_force: true, limit: 200 } },
    { pollMs },
  )

/** What restricts the project now, the strictest first, with who started it, when and why. */
export function InForce({ projectId, atMost = 200 }: { projectId: number; atMost?: number }) {
  const interventions = strictestFirst(useInForce(projectId).data?.data ?? [])
  const hidden = interventions.length - atMost
  if (interventions.length === 0) return null
  return (
    <Stack gap="sm">
      {interventions.slice(0, atMost).map((intervention) => (
        <InForceAlert key={intervention.id} intervention={intervention} />
      ))}
      {hidden > 0 && (
        <To to="/projects/$projectId/sending" params={{ projectId: String(projectId) }} fz="sm">
          {hidden} more in force
        </To>
      )}
    </Stack>
  )
}

const colours = { bad: 'red', warn: 'yellow', calm: 'gray', good: 'green' }

/** One intervention in force, with its actions. */
export function InForceAlert({ intervention }: { intervention: Intervention }) {
  const start = useAct()
  const actOn = useActOn()
  const { project_id, id, kind, public_note, appeal } = intervention
  const { noun, tone, title, effect } = kinds[kind]
  return (
    <Alert color={colours[tone]} title={title(intervention)}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <Stack gap={4} flex="1 1 300px" style={{ overflowWrap: 'anywhere' }}>
          <Text size="sm">{effect}</Text>
          <Text size="sm">
            <Started intervention={intervention} /> Reason: {intervention.reason}
          </Text>
          <Text size="sm">{public_note === null ? 'No public note.' : `Public note: ${public_note}`}</Text>
          {appeal && <Appeal appeal={appeal} />}
        </Stack>
        <Group gap="xs">
          <Can change="interventions.edit">
            <Button
              size="compact-sm"
              variant="default"
              aria-label={`Edit ${noun}`}
              onClick={() => actOn('interventions.show', { project_id, id }, editIntervention)}
            >
              Edit
            </Button>
          </Can>
          <Can change="interventions.end">
            <Button
              size="compact-sm"
              variant="default"
              aria-label={`End ${noun}`}
              onClick={() => start(endIntervention(intervention))}
            >
              End
            </Button>
          </Can>
        </Group>
      </Group>
    </Alert>
  )
}

/** "Since … (2 hours ago), by ada@example.com, until …." */
function Started({ intervention }: { intervention: Intervention }) {
  const { created_at, expires_at, drains_before } = intervention
  return (
    <>
      Since <ExactAndRelativeTime at={created_at} />, by <Starter of={intervention} />
      {expires_at === null ? (
        drains_before === null ? (
          ', without expiry.'
        ) : (
          ', until the gradual release is complete.'
        )
      ) : (
        <>
          , until <ExactAndRelativeTime at={expires_at} />.
        </>
      )}
    </>
  )
}
