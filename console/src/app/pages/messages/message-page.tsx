import { Button, SimpleGrid, Stack, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../../api/client.ts'
import type { Message } from '../../../api/operations.gen.ts'
import { useAnswer, useMany, useOne } from '../../../api/queries.ts'
import { Badge, Status } from '../../../components/badge.tsx'
import { Can } from '../../../components/can.tsx'
import { To } from '../../../components/link.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { NoticeAlert } from '../../../resources/interventions/notice-alert.tsx'
import { MessageDetails, Sender } from '../../../resources/messages/details.tsx'
import { Recipients } from '../../../resources/messages/recipients.tsx'
import { Timeline } from '../../../resources/messages/timeline.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useMembers } from '../../components/use-members.ts'
import { cancelMessage } from './acts.tsx'

const route = getRouteApi('/projects/$projectId/messages/$id')
/** Delivered messages are polled as well, because they can still receive a complaint. */
const pollMs = 5_000

export function MessagePage() {
  const { projectId, id } = route.useParams()
  const path = { project_id: Number(projectId), id }
  const message = useOne('customer.messages.show', path, { pollMs })
  const events = useAnswer('customer.messages.events', { path }, { pollMs })
  const explained = useAnswer('customer.messages.explain', { path }, { pollMs })
  return (
    <QueryState query={message} rows={8}>
      {(loaded) => (
        <>
          <Head loaded={loaded} />
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
            <Stack gap="xl">
              {explained.data?.interventions.map((notice) => (
                <NoticeAlert key={notice.id} notice={notice} />
              ))}
              <Recipients recipients={loaded.data.recipients} waits={explained.data?.recipients ?? []} />
              <section>
                <Title order={3} mb="sm">
                  Events
                </Title>
                <QueryState query={events}>{({ data }) => <Timeline events={data} />}</QueryState>
              </section>
            </Stack>
            <MessageDetails message={loaded.data} sentWith={<SentWith message={loaded.data} />} />
          </SimpleGrid>
        </>
      )}
    </QueryState>
  )
}

function Head({ loaded }: { loaded: Answer<Message> }) {
  const start = useAct()
  const { project_id, subject, status, is_test, recipients } = loaded.data
  const isScheduled = recipients.some((recipient) => recipient.status === 'scheduled')
  return (
    <PageHead
      title={subject || 'No subject'}
      above={
        <To to="/projects/$projectId/messages" params={{ projectId: String(project_id) }}>
          Messages
        </To>
      }
      beside={
        <>
          <Status value={status} />
          {is_test && <Badge>test</Badge>}
        </>
      }
    >
      {isScheduled && (
        <Can change="customer.messages.cancel">
          <Button variant="outline" color="red" onClick={() => start(cancelMessage(loaded))}>
            Cancel message
          </Button>
        </Can>
      )}
    </PageHead>
  )
}

function SentWith({ message: { project_id, api_key_id, user_id } }: { message: Message }) {
  const [key] = useMany('customer.api-keys.show', api_key_id === null ? [] : [{ project_id, id: api_key_id }])
  const members = useMembers(project_id)
  const email = members.find((member) => member.user_id === user_id)?.email
  return <Sender of={{ project_id, api_key_id, user_id }} keyName={key?.name} email={email} />
}
