import { NumberInput, TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import type { Discard, Project } from '../../../api/operations.gen.ts'
import { DateTimeField } from '../../../components/date-time-field.tsx'
import { type Act, nothingToFillIn } from '../../act/act.ts'

export const holdQueue = ({ id, name }: Project): Act<'queue.hold', undefined, object> => ({
  operation: 'queue.hold',
  path: { project_id: id },
  title: `Hold mail for ${name}`,
  button: 'Hold mail',
  success: 'Mail held',
  isDangerous: true,
  base: nothing,
  ...nothingToFillIn,
})

export const releaseQueue = ({
  id,
  name,
}: Project): Act<'queue.release', undefined, { per_minute: number | string }> => ({
  operation: 'queue.release',
  path: { project_id: id },
  title: `Release mail for ${name}`,
  button: 'Release mail',
  success: 'Mail released',
  focusesReason: true,
  base: nothing,
  form: () => ({ per_minute: '' }),
  steps: [
    {
      title: 'Release',
      fields: ({ form, set }) => (
        <NumberInput
          label="Recipients per minute"
          description="Optional. Limits sending until all mail that is ready now has been attempted. Empty: all at once."
          value={form.per_minute}
          onChange={(per_minute) => set({ per_minute })}
          min={1}
          max={16_666}
          allowDecimal={false}
        />
      ),
    },
  ],
  body: ({ per_minute }) => (per_minute === '' ? {} : { per_minute: Number(per_minute) }),
})

interface DiscardForm {
  older_than: string
  tag: string
  recipient_domain: string
}

export const discardQueue = ({ id, name }: Project): Act<'queue.discard', undefined, DiscardForm> => ({
  operation: 'queue.discard',
  path: { project_id: id },
  title: `Discard queued mail of ${name}`,
  button: 'Discard mail',
  success: 'Discarding started',
  isDangerous: true,
  base: nothing,
  form: () => ({ older_than: '', tag: '', recipient_domain: '' }),
  steps: [
    {
      title: 'Queued mail',
      fields: ({ form, set }) => (
        <>
          <TextInput
            label="Tag"
            description="Optional. Only messages with this tag."
            value={form.tag}
            onChange={(event) => set({ tag: event.currentTarget.value })}
            maxLength={64}
            autoComplete="off"
            data-autofocus
          />
          <TextInput
            label="Recipient domain"
            description="Optional. Only recipients at exactly this domain."
            placeholder="example.net"
            value={form.recipient_domain}
            onChange={(event) => set({ recipient_domain: event.currentTarget.value })}
            maxLength={253}
            autoComplete="off"
          />
          <DateTimeField
            label="Accepted before"
            description="Optional. Only messages accepted before this time."
            value={form.older_than}
            onChange={(older_than) => set({ older_than })}
          />
        </>
      ),
    },
  ],
  body: ({ older_than, tag, recipient_domain }) => ({
    ...(older_than && { older_than }),
    ...(tag.trim() && { tag: tag.trim() }),
    ...(recipient_domain.trim() && { recipient_domain: recipient_domain.trim() }),
  }),
})

const discardAct = (
  verb: 'stop' | 'resume',
  { project_id, id }: Discard,
): Act<'discards.stop' | 'discards.resume', undefined, object> => ({
  operation: `discards.${verb}`,
  path: { project_id, id },
  title: verb === 'stop' ? 'Stop discarding mail' : 'Resume discarding mail',
  button: verb === 'stop' ? 'Stop discarding' : 'Resume discarding',
  success: verb === 'stop' ? 'Discarding stopped' : 'Discarding resumed',
  isDangerous: verb === 'resume',
  base: nothing,
  ...nothingToFillIn,
})

export const stopDiscard = (discard: Discard) => discardAct('stop', discard)
export const resumeDiscard = (discard: Discard) => discardAct('resume', discard)
