import { Textarea } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import type { Notice } from '../../../api/operations.gen.ts'
import { kinds } from '../../../resources/interventions/kinds.ts'
import type { Act } from '../../act/act.ts'

interface AppealForm {
  text: string
}

export const appeal = (
  projectId: number,
  { id, kind }: Notice,
): Act<'customer.notices.appeal', undefined, AppealForm> => ({
  operation: 'customer.notices.appeal',
  path: { project_id: projectId, id },
  title: `Appeal against the ${kinds[kind].noun}`,
  button: 'Send appeal',
  success: 'Appeal sent',
  base: nothing,
  form: () => ({ text: '' }),
  fields: ({ form, set }) => (
    <Textarea
      label="Why should the operator end it?"
      description="The operator reads it. You can appeal once."
      value={form.text}
      onChange={(event) => set({ text: event.currentTarget.value })}
      minRows={4}
      maxRows={12}
      autosize
      maxLength={2000}
      required
      data-autofocus
    />
  ),
  body: ({ text }) => (text.trim() === '' ? undefined : { text: text.trim() }),
})
