import { Textarea } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Note } from '../../../api/operations.gen.ts'
import { type Act, nothingToFillIn } from '../../act/act.ts'

interface NoteForm {
  text: string
}

const pathOf = ({ project_id, id }: Note) => ({ project_id, id })

const noteFields = {
  steps: [
    {
      title: 'Note',
      fields: ({ form, set }: { form: NoteForm; set: (part: Partial<NoteForm>) => void }) => (
        <Textarea
          label="Note"
          description="Only administrators see it."
          value={form.text}
          onChange={(event) => set({ text: event.currentTarget.value })}
          minRows={4}
          maxRows={14}
          autosize
          maxLength={4000}
          data-autofocus
        />
      ),
    },
  ],
  body: ({ text }: NoteForm) => (text.trim() ? { text } : undefined),
}

export const createNote = (projectId: number): Act<'notes.create', undefined, NoteForm> => ({
  operation: 'notes.create',
  path: { project_id: projectId },
  title: 'Add a note',
  button: 'Add note',
  success: 'Note added',
  base: nothing,
  form: () => ({ text: '' }),
  ...noteFields,
})

const baseOf = (loaded: Answer<Note>) => ({
  loaded,
  refetch: () => callForVersion('notes.show', { path: pathOf(loaded.data) }),
  compare: ({ text }: Note) => ({ text }),
})

export const editNote = (loaded: Answer<Note>): Act<'notes.edit', Note, NoteForm> => ({
  operation: 'notes.edit',
  path: pathOf(loaded.data),
  title: 'Edit note',
  button: 'Save changes',
  success: 'Note saved',
  base: baseOf(loaded),
  form: ({ text }) => ({ text }),
  ...noteFields,
})

export const deleteNote = (loaded: Answer<Note>): Act<'notes.delete', Note, object> => ({
  operation: 'notes.delete',
  path: pathOf(loaded.data),
  title: 'Delete note',
  button: 'Delete note',
  success: 'Note deleted',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
})
