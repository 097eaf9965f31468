import { Button, Stack, Text } from '@mantine/core'
import type { Notice } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { NoticeAlert } from '../../../resources/interventions/notice-alert.tsx'
import { useAct } from '../../act/use-act.tsx'
import { appeal } from './acts.tsx'

/** Notices also end automatically. */
const pollMs = 15_000

/** What restricts the project now, with the operator's explanations. */
export function NoticesInForce({ projectId, atMost = 3 }: { projectId: number; atMost?: number }) {
  const notices = useAnswer(
    'customer.notices.list',
    { path: { project_id: projectId }, query: { in_force: true } },
    { pollMs },
  )
  const all = notices.data?.data ?? []
  if (all.length === 0) return null
  return (
    <Stack gap="sm" component="section" aria-label="Notices">
      {all.slice(0, atMost).map((notice) => (
        <NoticeWithAppeal key={notice.id} projectId={projectId} notice={notice} />
      ))}
      <To to="/projects/$projectId/notices" params={{ projectId: String(projectId) }} fz="sm">
        All notices
      </To>
    </Stack>
  )
}

function NoticeWithAppeal({ projectId, notice }: { projectId: number; notice: Notice }) {
  const start = useAct()
  return (
    <NoticeAlert
      notice={notice}
      actions={
        notice.appeal === null && (
          <Can change="customer.notices.appeal">
            <Button size="compact-sm" variant="default" onClick={() => start(appeal(projectId, notice))}>
              Appeal
            </Button>
          </Can>
        )
      }
    >
      <Appeal of={notice} />
    </NoticeAlert>
  )
}

export function Appeal({ of: { appeal: made } }: { of: Notice }) {
  if (made === null) return null
  return (
    <Text size="sm">
      Your appeal on <ExactTime at={made.created_at} />: {made.text}
    </Text>
  )
}
