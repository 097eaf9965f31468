import { Button, Group, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../api/client.ts'
import type { Message } from '../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../api/queries.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Badge, Status } from '../../components/badge.tsx'
import { Copy } from '../../components/copy.tsx'
import { Facts } from '../../components/facts.tsx'
import { number } from '../../components/figures.tsx'
import { To } from '../../components/link.tsx'
import { PartHead } from '../../components/page-head.tsx'
import { Asked } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
import { cancelMessage } from './acts.tsx'
import classes from './message-page.module.css'
import { Timeline } from './timeline.tsx'

const route = getRouteApi('/projects/$projectId/messages/$id')
/** Mail moves by itself, and also what was delivered can still be complained about. */
const everyMs = 5_000

export function MessagePage() {
  const { projectId, id } = route.useParams()
  const path = { project_id: Number(projectId), id }
  const message = useOne('messages.show', path, { everyMs })
  const events = useAnswer('messages.events', { path }, { everyMs })
  return (
    <Asked query={message} rows={8}>
      {(seen) => (
        <>
          <Head seen={seen} />
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
            <Stack gap="xl">
              <Recipients recipients={seen.data.recipients} />
              <section>
                <Title order={3} mb="sm">
                  What happened
                </Title>
                <Asked query={events}>{({ data }) => <Timeline events={data} />}</Asked>
              </section>
            </Stack>
            <About message={seen.data} />
          </SimpleGrid>
        </>
      )}
    </Asked>
  )
}

function Head({ seen }: { seen: Answer<Message> }) {
  const start = useAct()
  const { project_id, subject, status, is_test, recipients } = seen.data
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
        <Button variant="outline" color="red" onClick={() => start(cancelMessage(seen))}>
          Do not send
        </Button>
      )}
    </PartHead>
  )
}

function Recipients({ recipients }: Pick<Message, 'recipients'>) {
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
            <Table.Th scope="col">Since</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {recipients.map(({ address, kind, status, reply, updated_at }) => (
            <Table.Tr key={`${kind} ${address}`}>
              <Table.Td>
                {kind !== 'to' && <span className={classes.kind}>{kind} </span>}
                {address}
                {reply && <code className={classes.reply}>{reply}</code>}
              </Table.Td>
              <Table.Td>
                <Status value={status} />
              </Table.Td>
              <Table.Td>
                <When at={updated_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  )
}

function About({ message }: { message: Message }) {
  const { id, project_id, from, tags, metadata, size_bytes, api_key_id, user_id, send_at, created_at } =
    message
  const params = { projectId: String(project_id) }
  return (
    <Stack gap="xl">
      <section>
        <Title order={3} mb="sm">
          Message
        </Title>
        <Facts
          facts={[
            ['From', from],
            ['Accepted', <When key="accepted" at={created_at} />],
            ['To be sent', <When key="send" at={send_at} never="at once" />],
            ['Size', `${number(size_bytes)} bytes`],
            [
              'Sent with',
              api_key_id === null ? (
                user_id === null ? (
                  'no key: it was forwarded'
                ) : (
                  `a token of user ${user_id}`
                )
              ) : (
                <To key="key" to="/projects/$projectId/api-keys" params={params}>
                  API key {api_key_id}
                </To>
              ),
            ],
            [
              'Id',
              <Group key="id" gap="xs" justify="flex-end">
                <code>{id}</code>
                <Copy text={id} of="the message's id" />
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
          <Facts facts={Object.entries(metadata).map(([name, value]) => [name, String(value)])} />
        )}
      </section>
    </Stack>
  )
}
