import { Group, TextInput, UnstyledButton } from '@mantine/core'
import { useAnswer } from '../../api/queries.ts'
import { useMe } from '../../api/session.ts'
import classes from './act.module.css'

const offered = 4

/** Why this is done. What the operator has said lately is offered again. */
export function ReasonField({
  value,
  onChange,
  isRequired,
  isFirst,
}: {
  value: string
  onChange: (text: string) => void
  isRequired: boolean
  /** Nothing else is to be filled in: the cursor waits here. */
  isFirst: boolean
}) {
  const me = useMe()
  const recent = useAnswer('audit.list', { query: { actor: me.id, limit: 50 } })
  const reasons = new Set((recent.data?.data ?? []).flatMap(({ reason }) => (reason ? [reason] : [])))
  return (
    <div>
      <TextInput
        label="Reason"
        description={
          isRequired ? 'Kept in the audit for ever. Required.' : 'Kept in the audit for ever. Optional here.'
        }
        placeholder="Card testing, ticket 4711"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        required={isRequired}
        maxLength={500}
        autoComplete="off"
        data-autofocus={isFirst || undefined}
      />
      {reasons.size > 0 && (
        <Group gap={6} mt={6} role="group" aria-label="What you said lately">
          {[...reasons].slice(0, offered).map((reason) => (
            <UnstyledButton key={reason} className={classes.recent} onClick={() => onChange(reason)}>
              {reason}
            </UnstyledButton>
          ))}
        </Group>
      )}
    </div>
  )
}
