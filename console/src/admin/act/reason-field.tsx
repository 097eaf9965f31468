import { Group, TextInput, UnstyledButton } from '@mantine/core'
import type { QueryOf } from '../../api/client.ts'
import type { AuditEntry } from '../../api/operations.gen.ts'
import { useAnswer } from '../../api/queries.ts'
import { useMe } from '../../api/session.ts'
import { differences } from '../../components/changes.tsx'
import classes from './act.module.css'

const maxSuggestions = 4

/** The reason for a change. Suggests the administrator's recent reasons for the same kind of change. */
export function ReasonField({
  operation,
  fields,
  value,
  onChange,
  isRequired,
  isFirst,
}: {
  operation: string
  /**
   * The fields that the change sets. They are needed to tell changes apart, because locking a project and changing
   * its plan are the same operation.
   */
  fields: string[]
  value: string
  onChange: (text: string) => void
  isRequired: boolean
  /** Whether the field gets the focus. */
  isFirst: boolean
}) {
  const me = useMe()
  const audited = operation as NonNullable<QueryOf<'audit.list'>['operation']>
  const recent = useAnswer('audit.list', { query: { actor: me.id, operation: audited, limit: 50 } })
  const similar = (recent.data?.data ?? []).filter((entry) => changesOneOf(entry, fields))
  const reasons = new Set(similar.flatMap(({ reason }) => (reason ? [reason] : [])))
  return (
    <div>
      <TextInput
        label="Reason"
        description={`${isRequired ? 'Required' : 'Optional'}. Saved permanently in the audit log.`}
        placeholder="Card testing, ticket 4711"
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
        required={isRequired}
        maxLength={500}
        autoComplete="off"
        data-autofocus={isFirst || undefined}
      />
      {reasons.size > 0 && (
        <Group gap={6} mt={6} role="group" aria-label="Recent reasons">
          {[...reasons].slice(0, maxSuggestions).map((reason) => (
            <UnstyledButton key={reason} className={classes.recent} onClick={() => onChange(reason)}>
              {reason}
            </UnstyledButton>
          ))}
        </Group>
      )}
    </div>
  )
}

/** Only edits are compared: create operations set every field, and other operations have none. */
function changesOneOf({ before, after }: AuditEntry, fields: string[]): boolean {
  if (before === null || after === null) return true
  const changed = differences('', null, before, after).map(({ field }) => field)
  return changed.length === 0 || fields.length === 0 || fields.some((field) => changed.includes(field))
}
