import { Button, Group, Stack, Text } from '@mantine/core'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Reversal } from '../../../api/operations.gen.ts'
import { useAnswer, useMany } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { ExactAndRelativeTime } from '../../../components/relative-time.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'
import { useActOn } from '../../act/use-act-on.ts'

const labels: Record<Reversal['field'], string> = {
  reputation_score: 'Score offset',
  allow_service_mta: 'Shared mail servers',
  admin_plan_id: 'Plan override',
  admin_subscription_status: 'Subscription override',
}

const pathOf = ({ project_id, id }: Reversal) => ({ project_id, id })

const makePermanent = (loaded: Answer<Reversal>): Act<'reversals.delete', Reversal, object> => ({
  operation: 'reversals.delete',
  path: pathOf(loaded.data),
  title: `${labels[loaded.data.field]}: make permanent`,
  button: 'Make permanent',
  success: 'Override made permanent',
  base: { loaded, refetch: () => callForVersion('reversals.show', { path: pathOf(loaded.data) }) },
  ...nothingToFillIn,
})

/** Overrides that end automatically, with the values that are restored. */
export function TemporaryOverrides({ projectId }: { projectId: number }) {
  const actOn = useActOn()
  const reversals = useAnswer('reversals.list', { path: { project_id: projectId } }, { pollMs: 30_000 })
  const pending = reversals.data?.data ?? []
  const planIds = pending.filter(({ field }) => field === 'admin_plan_id').map(({ original }) => original)
  const plans = useMany(
    'plans.show',
    planIds.filter((id) => typeof id === 'number').map((id) => ({ id })),
  )
  if (pending.length === 0) return null
  const originalOf = ({ field, original }: Reversal): string => {
    if (original === null) return 'none'
    if (field === 'admin_plan_id') return plans.find(({ id }) => id === original)?.name ?? `plan ${original}`
    if (field === 'allow_service_mta') return original ? 'allowed' : 'not allowed'
    return String(original).replaceAll('_', ' ')
  }
  return (
    <Stack gap="xs" mt="md" component="section" aria-label="Temporary overrides">
      {pending.map((reversal) => (
        <Group key={reversal.id} justify="space-between" gap="xs" wrap="nowrap" align="flex-start">
          <Text size="sm">
            {labels[reversal.field]}: restored to {originalOf(reversal)} on{' '}
            <ExactAndRelativeTime at={reversal.expires_at} />
          </Text>
          <Can change="reversals.delete">
            <Button
              size="compact-sm"
              variant="default"
              style={{ flexShrink: 0 }}
              aria-label={`Make permanent: ${labels[reversal.field]}`}
              onClick={() => actOn('reversals.show', pathOf(reversal), makePermanent)}
            >
              Make permanent
            </Button>
          </Can>
        </Group>
      ))}
    </Stack>
  )
}
