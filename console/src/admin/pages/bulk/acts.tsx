import { Select } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import type { BodyOf } from '../../../api/client.ts'
import type { BulkAction } from '../../../api/operations.gen.ts'
import { ExpiryField } from '../../../components/expiry-field.tsx'
import { counted } from '../../../components/numbers.ts'
import { type Act, nothingToFillIn } from '../../act/act.ts'
import { type NewInterventionForm, newIntervention } from '../interventions/acts.tsx'
import { LockFields, type LockForm, PlanSelect } from '../projects/acts.tsx'

/** The projects of a bulk action: those that were ticked, or all that match the filters of the list. */
export type Selection =
  | { ids: number[]; filter?: never }
  | { filter: NonNullable<BodyOf<'bulk.create'>['filter']>; ids?: never }

type Started = (bulk: BulkAction) => void

const nameOf = ({ ids }: Selection): string =>
  ids ? counted(ids.length, 'project') : 'all projects that match'

/** The operation is tried for every project, for at most 25 seconds. */
const previewTimeoutMs = 60_000

const common = (done: Started) => ({
  operation: 'bulk.create' as const,
  path: {},
  success: 'Bulk action started',
  base: nothing,
  previewTimeoutMs,
  done,
})

export const lockAll = (selection: Selection, done: Started): Act<'bulk.create', undefined, LockForm> => ({
  ...common(done),
  title: `Lock ${nameOf(selection)}`,
  button: 'Lock projects',
  isDangerous: true,
  focusesReason: true,
  form: () => ({ expires_at: '', public_note: '' }),
  steps: [{ title: 'Lock', fields: ({ form, set }) => <LockFields form={form} set={set} /> }],
  body: ({ expires_at, public_note }) =>
    public_note.trim()
      ? {
          ...selection,
          operation: 'interventions.create',
          body: { kind: 'lock', public_note: public_note.trim(), expires_at: expires_at || null },
        }
      : {
          ...selection,
          operation: 'projects.edit',
          body: { is_locked: true, ...(expires_at && { expires_at }) },
        },
})

interface PlanForm {
  field: 'admin_plan_id' | 'plan_id'
  plan_id: string | null
  expires_at: string
}

export const changePlanOfAll = (
  selection: Selection,
  done: Started,
): Act<'bulk.create', undefined, PlanForm> => ({
  ...common(done),
  title: `Change the plan of ${nameOf(selection)}`,
  button: 'Change plan',
  form: () => ({ field: 'admin_plan_id', plan_id: null, expires_at: '' }),
  steps: [
    {
      title: 'Plan',
      fields: ({ form, set }) => (
        <>
          <Select
            label="Change"
            value={form.field}
            onChange={(field) => set({ field: field as PlanForm['field'] })}
            data={[
              { value: 'admin_plan_id', label: 'Plan override' },
              { value: 'plan_id', label: 'Plan that is billed' },
            ]}
            allowDeselect={false}
          />
          <PlanSelect label="Plan" value={form.plan_id} onChange={(plan_id) => set({ plan_id })} isRequired />
          {form.field === 'admin_plan_id' && (
            <ExpiryField
              label="Until"
              description="Optional. At this time, the override returns to its previous value."
              value={form.expires_at}
              onChange={(expires_at) => set({ expires_at })}
            />
          )}
        </>
      ),
    },
  ],
  body: ({ field, plan_id, expires_at }) =>
    plan_id === null
      ? undefined
      : {
          ...selection,
          operation: 'projects.edit',
          body: {
            [field]: Number(plan_id),
            ...(field === 'admin_plan_id' && expires_at && { expires_at }),
          },
        },
})

export const interveneInAll = (
  selection: Selection,
  done: Started,
): Act<'bulk.create', undefined, NewInterventionForm> => ({
  ...newIntervention,
  ...common(done),
  title: `Start an intervention for ${nameOf(selection)}`,
  button: 'Start interventions',
  body: (form) => {
    const body = newIntervention.body(form)
    return body && { ...selection, operation: 'interventions.create', body }
  },
})

const bulkAct = (
  verb: 'stop' | 'resume',
  { id }: BulkAction,
): Act<'bulk.stop' | 'bulk.resume', undefined, object> => ({
  operation: `bulk.${verb}`,
  path: { id },
  title: verb === 'stop' ? 'Stop the bulk action' : 'Resume the bulk action',
  button: verb === 'stop' ? 'Stop' : 'Resume',
  success: verb === 'stop' ? 'Bulk action stopped' : 'Bulk action resumed',
  isDangerous: verb === 'resume',
  base: nothing,
  ...nothingToFillIn,
})

export const stopBulk = (bulk: BulkAction) => bulkAct('stop', bulk)
export const resumeBulk = (bulk: BulkAction) => bulkAct('resume', bulk)
