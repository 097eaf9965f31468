import { Alert, Button, Group, SimpleGrid, Stack, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { nothing } from '../../../act/base.ts'
import type { AuditEntry } from '../../../api/operations.gen.ts'
import { useMany, useOne } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { differences } from '../../../components/changes.tsx'
import { Copy } from '../../../components/copy.tsx'
import { DescriptionList } from '../../../components/description-list.tsx'
import { To } from '../../../components/link.tsx'
import { number } from '../../../components/numbers.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactAndRelativeTime } from '../../../components/relative-time.tsx'
import { QueryState } from '../../../components/states.tsx'
import { useZone } from '../../../components/use-zone.tsx'
import { exactTime, otherZone } from '../../../components/zone.ts'
import { type Act, nothingToFillIn } from '../../act/act.ts'
import { useAct } from '../../act/use-act.tsx'
import { Changes } from '../../components/changes.tsx'
import classes from './audit-entry-page.module.css'
import { useNames } from './names.ts'
import { actorOf, type Names, sentenceOf } from './sentences.ts'

const route = getRouteApi('/audit/$id')

export function AuditEntryPage() {
  const query = useOne('audit.show', { id: Number(route.useParams().id) })
  return (
    <QueryState query={query} rows={10}>
      {({ data }) => <EntryOf entry={data} />}
    </QueryState>
  )
}

const undoEntry = ({ id }: AuditEntry): Act<'audit.undo', undefined, object> => ({
  operation: 'audit.undo',
  path: { id },
  title: `Undo audit entry ${id}`,
  button: 'Undo change',
  success: 'Change undone',
  isDangerous: true,
  base: nothing,
  ...nothingToFillIn,
})

function EntryOf({ entry }: { entry: AuditEntry }) {
  const names = useNames([entry])
  const start = useAct()
  const { resource_type, resource_id, before, after, related } = entry
  const changes = [
    ...differences(resource_type, resource_id, before, after),
    ...related.flatMap((change) => differences(change.resource, change.id, change.before, change.after)),
  ]
  return (
    <>
      <PageHead title={sentenceOf(entry, names)} above={<Above entry={entry} />}>
        <Can change="audit.undo">
          <Button variant="default" onClick={() => start(undoEntry(entry))}>
            Undo
          </Button>
        </Can>
      </PageHead>
      <Stack gap="xl">
        {entry.reason && <blockquote className={classes.reason}>{entry.reason}</blockquote>}
        {entry.limit_exception && (
          <Alert color="yellow" title="Over plan limit">
            The plan limit <code>{entry.limit_exception.limit}</code> was{' '}
            {number(entry.limit_exception.value)}. This change brought the count to{' '}
            {number(entry.limit_exception.count)}.
          </Alert>
        )}
        <section>
          <Title order={2} mb="sm">
            Changes
          </Title>
          {changes.length > 0 ? (
            <Changes changes={changes} before="Before" after="After" />
          ) : (
            <Text c="dimmed">No fields changed.</Text>
          )}
        </section>
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
          <Request entry={entry} names={names} />
          <ChainPosition entry={entry} />
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

function Request({ entry, names }: { entry: AuditEntry; names: Names }) {
  const { actor_kind, actor, at, request_id, operation, subject, resource_type, resource_id, bulk_id } = entry
  const other = otherZone(useZone())
  const items: [string, ReactNode][] = [
    ['Actor', actorOf(entry, names)],
    ['Email', actor.email ?? (actor_kind === 'person' ? 'erased' : 'none')],
    ['IP address', actor.ip ?? 'none'],
    ['User agent', actor.user_agent ?? 'none'],
    [
      'Time',
      <span key="time">
        <ExactAndRelativeTime at={at} />
      </span>,
    ],
    [other === 'utc' ? 'Time in UTC' : 'Local time', exactTime(at, other)],
    ['Operation', <code key="operation">{operation}</code>],
    ['Resource', `${resource_type.replaceAll('_', ' ')} ${resource_id}`],
    ...(bulk_id === null
      ? []
      : [
          [
            'Bulk action',
            <To key="bulk" to="/bulk/$id" params={{ id: bulk_id }}>
              Show bulk action
            </To>,
          ] as [string, ReactNode],
        ]),
    ...(subject
      ? [
          ['Affected person', [subject.name, subject.email].filter(Boolean).join(', ') || 'erased'] as [
            string,
            string,
          ],
        ]
      : []),
    ['Request ID', <LongValue key="request" text={request_id} of="request ID" />],
  ]
  return (
    <section>
      <Title order={2} mb="sm">
        Request
      </Title>
      <DescriptionList items={items} />
    </section>
  )
}

function ChainPosition({ entry: { chain, seq, hash, prev_hash } }: { entry: AuditEntry }) {
  return (
    <section>
      <Title order={2} mb="sm">
        Hash chain
      </Title>
      <DescriptionList
        items={[
          ['Chain', chain === 0 ? 'entries without a project' : `project ${chain}`],
          ['Entry', number(seq)],
          ['Hash', <LongValue key="hash" text={hash} of="hash" />],
          ['Previous hash', <LongValue key="previous" text={prev_hash} of="previous hash" />],
        ]}
      />
    </section>
  )
}

function LongValue({ text, of }: { text: string; of: string }) {
  return (
    <Group gap="xs" justify="flex-end">
      <code className={classes.long}>{text}</code>
      <Copy text={text} of={of} />
    </Group>
  )
}
