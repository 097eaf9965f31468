import { Button, Group, Stack, Text, Title } from '@mantine/core'
import { useState } from 'react'
import type { Note } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { number } from '../../../components/numbers.ts'
import { RelativeTime } from '../../../components/relative-time.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { QueryState } from '../../../components/states.tsx'
import { useAct } from '../../act/use-act.tsx'
import { useActOn } from '../../act/use-act-on.ts'
import { createNote, deleteNote, editNote } from './acts.tsx'
import classes from './notes.module.css'

const shownAtFirst = 3

/** Administrators' notes about the project, newest first. */
export function Notes({ projectId }: { projectId: number }) {
  const start = useAct()
  const [isExpanded, setIsExpanded] = useState(false)
  // A project has at most 200 notes.
  const query = useAnswer('notes.list', { path: { project_id: projectId }, query: { limit: 200 } })
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2}>Notes</Title>
        <Can change="notes.create">
          <Button variant="default" size="compact-sm" onClick={() => start(createNote(projectId))}>
            Add note
          </Button>
        </Can>
      </Group>
      <QueryState query={query} rows={3}>
        {({ data }) => {
          const hidden = isExpanded ? 0 : data.length - shownAtFirst
          return (
            <Stack gap="xs">
              {data.length === 0 && (
                <Text c="dimmed">No notes. Members of the project cannot see notes.</Text>
              )}
              {data.slice(0, isExpanded ? undefined : shownAtFirst).map((note) => (
                <NoteOf key={note.id} note={note} />
              ))}
              {hidden > 0 && (
                <Group>
                  <Button variant="default" size="compact-sm" onClick={() => setIsExpanded(true)}>
                    Show all ({number(data.length)})
                  </Button>
                </Group>
              )}
            </Stack>
          )
        }}
      </QueryState>
    </section>
  )
}

function NoteOf({ note }: { note: Note }) {
  const actOn = useActOn()
  const path = { project_id: note.project_id, id: note.id }
  return (
    <article className={classes.note} aria-label={`Note ${note.id}`}>
      <Group justify="space-between" wrap="nowrap" align="flex-start" gap="xs">
        <Text className={classes.text ?? ''}>{note.text}</Text>
        <RowMenu
          of={`note ${note.id}`}
          acts={[
            {
              operation: 'notes.edit',
              label: 'Edit note',
              onClick: () => actOn('notes.show', path, editNote),
            },
            {
              operation: 'notes.delete',
              label: 'Delete note',
              onClick: () => actOn('notes.show', path, deleteNote),
              isDangerous: true,
            },
          ]}
        />
      </Group>
      <Text size="sm" c="dimmed">
        {note.author.email}, <RelativeTime at={note.created_at} />
        {note.version > 1 && (
          <>
            {' · edited '}
            <RelativeTime at={note.updated_at} />
          </>
        )}
      </Text>
    </article>
  )
}
