import { Button, Group, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../api/client.ts'
import type { Message, MessageExplanationForAdministrators } from '../../api/operations.gen.ts'
import { useAnswer, useMany, useOne } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Can } from '../../components/act/can.tsx'
import { Badge, Status } from '../../components/badge.tsx'
import { Copy } from '../../components/copy.tsx'
import { DescriptionList } from '../../components/description-list.tsx'
import { To } from '../../components/link.tsx'
import { number } from '../../components/numbers.ts'
import { PartHead } from '../../components/page-head.tsx'
import { ExactTime, RelativeTime } from '../../components/relative-time.tsx'
import { QueryState } from '../../components/states.tsx'
import { InForceAlert } from '../interventions/in-force.tsx'
import { cancelMessage } from './acts.tsx'
import classes from './message-page.module.css'
import { Timeline } from './timeline.tsx'

const route = getRouteApi('/projects/$projectId/messages/$id')
/** The polling interval. Delivered messages are polled as well, because they can still receive a complaint. */
const pollMs = 5_000

export function MessagePage() {
  const { projectId, id } = route.useParams()
  const path = { project_id: Number(projectId), id }
  const message = useOne('messages.show', path, { pollMs })
  const events = useAnswer('messages.events', { path }, { pollMs })
  const explained = useAnswer('messages.explain', { path }, { pollMs })
  return (
    <QueryState query={message} rows={8}>
      {(loaded) => (
        <>
          <Head loaded={loaded} />
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
            <Stack gap="xl">
              {explained.data?.interventions.map((intervention) => (
                <InForceAlert key={intervention.id} intervention={intervention} />
              ))}
              <Recipients recipients={loaded.data.recipients} waits={explained.data?.recipients ?? []} />
              <section>
                <Title order={3} mb="sm">
                  Events
                </Title>
                <QueryState query={events}>{({ data }) => <Timeline events={data} />}</QueryState>
              </section>
            </Stack>
            <Details message={loaded.data} />
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
    <PartHead
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
        <Can change="messages.cancel">
          <Button variant="outline" color="red" onClick={() => start(cancelMessage(loaded))}>
            Cancel message
          </Button>
        </Can>
      )}
    </PartHead>
  )
}

type Wait = MessageExplanationForAdministrators['recipients'][number]

/** `waits` has an entry for each recipient, in the same order, once it is loaded. */
function Recipients({ recipients, waits }: Pick<Message, 'recipients'> & { waits: Wait[] }) {
  return (
    <section>
      <Title order={3} mb="sm">
        Recipients
      </Title>
      <Table aria-label="Recipients" verticalSpacing={6} className={classes.recipients ?? ''}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Address</Table.Th>
            <Table.Th scope="col">Status</Table.Th>
            <Table.Th scope="col">Updated</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {recipients.map(({ address, kind, status, diagnostic, updated_at }, index) => (
            <Table.Tr key={`${kind} ${address}`}>
              <Table.Td>
                {kind !== 'to' && <span className={classes.kind}>{kind} </span>}
                {address}
                {diagnostic && <code className={classes.reply}>{diagnostic}</code>}
                <WaitText wait={waits[index]} />
              </Table.Td>
              <Table.Td>
                <Status value={status} />
              </Table.Td>
              <Table.Td>
                <RelativeTime at={updated_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  )
}

/** What the recipient waits for, and when it is tried next. */
function WaitText({ wait }: { wait: Wait | undefined }) {
  if (!wait?.waits_for) return null
  const { message, since, next_attempt_at } = wait
  return (
    <Text size="sm" c="dimmed">
      {message}
      {since && (
        <>
          {' '}
          Since <ExactTime at={since} />.
        </>
      )}
      {next_attempt_at && (
        <>
          {' '}
          Next attempt: <ExactTime at={next_attempt_at} /> (<RelativeTime at={next_attempt_at} />
          ).
        </>
      )}
    </Text>
  )
}

function Details({ message }: { message: Message }) {
  const { id, project_id, from, tags, metadata, size_bytes, api_key_id, user_id, send_at, created_at } =
    message
  const params = { projectId: String(project_id) }
  const [key] = useMany('api-keys.show', api_key_id === null ? [] : [{ project_id, id: api_key_id }])
  const [user] = useMany('users.show', user_id === null ? [] : [{ id: user_id }])
  return (
    <Stack gap="xl">
      <section>
        <Title order={3} mb="sm">
          Message
        </Title>
        <DescriptionList
          items={[
            ['From', from],
            ['Accepted', <RelativeTime key="accepted" at={created_at} />],
            ['Scheduled', <RelativeTime key="send" at={send_at} never="immediately" />],
            ['Size', `${number(size_bytes)} bytes`],
            [
              'Sent with',
              api_key_id === null ? (
                user_id === null ? (
                  'no key (forwarded mail)'
                ) : (
                  `access token of ${user?.email ?? `user ${user_id}`}`
                )
              ) : (
                <To key="key" to="/projects/$projectId/api-keys" params={params}>
                  API key {key?.name ?? api_key_id}
                </To>
              ),
            ],
            [
              'ID',
              <Group key="id" gap="xs" justify="flex-end">
                <code>{id}</code>
                <Copy text={id} of="message ID" />
              </Group>,
            ],
          ]}
        />
      </section>
      <section>
        <Title order={3} mb="sm">
          Tags
        </Title>
        <Group gap="xs">
          {tags.length === 0 && <Text c="dimmed">None</Text>}
          {tags.map((tag) => (
            <To key={tag} to="/projects/$projectId/messages" params={params} search={{ tag }}>
              {tag}
            </To>
          ))}
        </Group>
      </section>
      <section>
        <Title order={3} mb="sm">
          Metadata
        </Title>
        {Object.keys(metadata).length === 0 ? (
          <Text c="dimmed">None</Text>
        ) : (
          <DescriptionList items={Object.entries(metadata).map(([name, value]) => [name, String(value)])} />
        )}
      </section>
    </Stack>
  )
}
