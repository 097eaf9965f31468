import Type from 'typebox'
import { Timestamp } from '../../shared/wire.ts'

export const maxNoteCharacters = 4000

export const NoteText = Type.String({
  minLength: 1,
  maxLength: maxNoteCharacters,
  description: 'Plain text. Line breaks are allowed.',
  examples: ['Ada from billing called: the invoices go out on the 28th.'],
})

/** An administrator's note about a project. */
export const Note = Type.Object(
  {
    id: Type.Integer(),
    project_id: Type.Integer(),
    text: NoteText,
    author: Type.Object(
      { id: Type.Integer(), email: Type.String() },
      { additionalProperties: false, description: 'The administrator who wrote the note.' },
    ),
    version: Type.Integer(),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Note', additionalProperties: false },
)
