import { Alert, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { AuditEntry } from '../../api/operations.gen.ts'
import { useMany, useOne } from '../../api/queries.ts'
import { Changes, differences } from '../../components/changes.tsx'
import { Copy } from '../../components/copy.tsx'
import { Facts } from '../../components/facts.tsx'
import { number } from '../../components/figures.tsx'
import { To } from '../../components/link.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Asked } from '../../components/states.tsx'
import { exactly, When } from '../../components/when.tsx'
import classes from './audit-entry-page.module.css'
import { useNames } from './names.ts'
import { actorOf, type Names, sentenceOf } from './sentences.ts'

const route = getRouteApi('/audit/$id')

export function AuditEntryPage() {
  const query = useOne('audit.show', { id: Number(route.useParams().id) })
  return (
    <Asked query={query} rows={10}>
      {({ data }) => <EntryOf entry={data} />}
    </Asked>
  )
}

function EntryOf({ entry }: { entry: AuditEntry }) {
  const names = useNames([entry])
  const { resource_type, resource_id, before, after, related } = entry
  const changes = [
    ...differences(resource_type, resource_id, before, after),
    ...related.flatMap((change) => differences(change.resource, change.id, change.before, change.after)),
  ]
  return (
    <>
      <PageHead title={sentenceOf(entry, names)} above={<Above entry={entry} />} />
      <Stack gap="xl">
        {entry.reason && <blockquote className={classes.reason}>{entry.reason}</blockquote>}
        {entry.limit_exception && (
          <Alert color="yellow" title="Past a limit">
            The limit <code>{entry.limit_exception.limit}</code> was {number(entry.limit_exception.value)}.
            This made it {number(entry.limit_exception.count)}.
          </Alert>
        )}
        <section>
          <Title order={2} mb="sm">
            What changed
          </Title>
          {changes.length > 0 ? (
            <Changes changes={changes} before="Before" after="After" />
          ) : (
            <Text c="dimmed">No field of it.</Text>
          )}
        </section>
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
          <Who entry={entry} names={names} />
          <Place entry={entry} />
        </SimpleGrid>
      </Stack>
    </>
  )
}

function Above({ entry: { id, project_id } }: { entry: AuditEntry }) {
  const [project] = useMany('projects.show', project_id === null ? [] : [{ project_id }])
  return (
    <>
      <To to="/audit">Audit</To> / {id}
      {project_id !== null && (
        <>
          {' · '}
          <To to="/projects/$projectId/audit" params={{ projectId: String(project_id) }}>
            {project?.name ?? `project ${project_id}`}
          </To>
        </>
      )}
    </>
  )
}

function Who({ entry, names }: { entry: AuditEntry; names: Names }) {
  const { actor, at, request_id, operation, subject, resource_type, resource_id } = entry
  const isShell = actor.id === 0
  const facts: [string, ReactNode][] = [
    ['Who', actorOf(entry, names)],
    ['Email', actor.email ?? (isShell ? 'none' : 'erased')],
    ['Address', actor.ip ?? 'none'],
    ['Program', actor.user_agent ?? 'none'],
    [
      'When',
      <span key="when">
        {exactly(at)} (<When at={at} />)
      </span>,
    ],
    ['Operation', <code key="operation">{operation}</code>],
    ['On', `${resource_type.replaceAll('_', ' ')} ${resource_id}`],
    ...(subject
      ? [['Person', [subject.name, subject.email].filter(Boolean).join(', ') || 'erased'] as [string, string]]
      : []),
    ['Request', <Long key="request" text={request_id} of="the request's id" />],
  ]
  return (
    <section>
      <Title order={2} mb="sm">
        Who and when
      </Title>
      <Facts facts={facts} />
    </section>
  )
}

function Place({ entry: { chain, seq, hash, prev_hash } }: { entry: AuditEntry }) {
  return (
    <section>
      <Title order={2} mb="sm">
        Place in the chain
      </Title>
      <Facts
        facts={[
          ['Chain', chain === 0 ? 'what belongs to no project' : `project ${chain}`],
          ['Row', number(seq)],
          ['Hash', <Long key="hash" text={hash} of="the hash" />],
          ['Hash before', <Long key="before" text={prev_hash} of="the hash before" />],
        ]}
      />
    </section>
  )
}

function Long({ text, of }: { text: string; of: string }) {
  return (
    <Group gap="xs" justify="flex-end">
      <code className={classes.long}>{text}</code>
      <Copy text={text} of={of} />
    </Group>
  )
}
