import { Table, Text, Title } from '@mantine/core'
import type { Message, MessageExplanationForCustomers } from '../../api/operations.gen.ts'
import { Address } from '../../components/address.tsx'
import { Status } from '../../components/badge.tsx'
import { ExactAndRelativeTime, ExactTime } from '../../components/relative-time.tsx'
import { Sentence } from '../../components/sentence.tsx'
import classes from './recipients.module.css'

/** "ann@example.com and 2 more". */
export const firstOf = ([first, ...others]: { address: string }[]): string =>
  others.length === 0 ? (first?.address ?? 'none') : `${first?.address} and ${others.length} more`

type Wait = MessageExplanationForCustomers['recipients'][number]

/** `waits` has an entry for each recipient, in the same order, once it is loaded. */
export function Recipients({ recipients, waits }: Pick<Message, 'recipients'> & { waits: Wait[] }) {
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
                <Address of={address} />
                {diagnostic && <code className={classes.reply}>{diagnostic}</code>}
                {/* The explanation can be older than the status. */}
                {waits[index]?.status === status && <WaitText wait={waits[index]} />}
              </Table.Td>
              <Table.Td>
                <Status value={status} />
              </Table.Td>
              <Table.Td>
                <ExactTime at={updated_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  )
}

/** What the recipient waits for, and when it is tried next. */
function WaitText({ wait }: { wait: Wait }) {
  if (!wait.waits_for) return null
  const { message, since, next_attempt_at } = wait
  return (
    <Text size="sm" c="dimmed">
      {message && <Sentence text={message} />}
      {since && (
        <>
          {' '}
          Since <ExactTime at={since} />.
        </>
      )}
      {next_attempt_at && (
        <>
          {' '}
          Next attempt: <ExactAndRelativeTime at={next_attempt_at} />.
        </>
      )}
    </Text>
  )
}
