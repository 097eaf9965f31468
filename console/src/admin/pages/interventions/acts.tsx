import { NumberInput, Select, TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Intervention, Project } from '../../../api/operations.gen.ts'
import { ExpiryField } from '../../../components/expiry-field.tsx'
import { type Kind, kindChoices, kinds } from '../../../resources/interventions/kinds.ts'
import { type Act, nothingToFillIn, type Step } from '../../act/act.ts'

interface InterventionForm {
  pace_per_hour: number | string
  public_note: string
  expires_at: string
}

const paths = ({ project_id, id }: Intervention) => ({ project_id, id })

/** What the server expects; undefined while a field is missing. */
const configOf = (kind: Kind, { pace_per_hour, public_note, expires_at }: InterventionForm) =>
  kind === 'pace' && pace_per_hour === ''
    ? undefined
    : {
        pace_per_hour: kind === 'pace' ? Number(pace_per_hour) : null,
        public_note: public_note.trim() || null,
        expires_at: expires_at || null,
      }

const buttons: Record<Kind, string> = {
  warn: 'Warn project',
  pace: 'Pace project',
  hold: 'Hold mail',
  lock: 'Lock project',
}

export type NewInterventionForm = InterventionForm & { kind: Kind }

/** The fields of a new intervention, of one project or of many. */
export const newIntervention = {
  isDangerous: ({ kind }: NewInterventionForm) => kind === 'hold' || kind === 'lock',
  form: (): NewInterventionForm => ({ kind: 'pace', pace_per_hour: 500, public_note: '', expires_at: '' }),
  steps: [
    {
      title: 'Intervention',
      fields: ({ form, set }) => (
        <>
          <Select
            label="Kind"
            value={form.kind}
            onChange={(kind) => set({ kind: kind as Kind })}
            data={kindChoices}
            allowDeselect={false}
            data-autofocus
          />
          <ConfigFields kind={form.kind} form={form} set={set} />
        </>
      ),
    },
  ] satisfies Step<undefined, NewInterventionForm>[],
  body: ({ kind, ...form }: NewInterventionForm) => {
    const config = configOf(kind, form)
    return config && { kind, ...config }
  },
}

export const startIntervention = ({
  id,
  name,
}: Project): Act<'interventions.create', undefined, NewInterventionForm> => ({
  operation: 'interventions.create',
  path: { project_id: id },
  title: `Start an intervention for ${name}`,
  button: ({ kind }) => buttons[kind],
  success: 'Intervention started',
  base: nothing,
  ...newIntervention,
})

export const editIntervention = (
  loaded: Answer<Intervention>,
): Act<'interventions.edit', Intervention, InterventionForm> => ({
  operation: 'interventions.edit',
  path: paths(loaded.data),
  title: `Edit ${kinds[loaded.data.kind].noun}`,
  button: 'Save changes',
  success: 'Intervention saved',
  base: { loaded, refetch: () => callForVersion('interventions.show', { path: paths(loaded.data) }) },
  form: ({ pace_per_hour, public_note, expires_at }) => ({
    pace_per_hour: pace_per_hour ?? '',
    public_note: public_note ?? '',
    expires_at: expires_at ?? '',
  }),
  steps: [
    {
      title: 'Intervention',
      fields: ({ form, set, loaded: { kind } }) => <ConfigFields kind={kind} form={form} set={set} />,
    },
  ],
  body: (form, { kind }) => configOf(kind, form),
})

export const endIntervention = (intervention: Intervention): Act<'interventions.end', undefined, object> => {
  const { noun } = kinds[intervention.kind]
  return {
    operation: 'interventions.end',
    path: paths(intervention),
    title: `End ${noun}`,
    button: `End ${noun}`,
    success: 'Intervention ended',
    base: nothing,
    ...nothingToFillIn,
  }
}

function ConfigFields({
  kind,
  form,
  set,
}: {
  kind: Kind
  form: InterventionForm
  set: (part: Partial<InterventionForm>) => void
}) {
  return (
    <>
      {kind === 'pace' && (
        <NumberInput
          label="Recipients per hour"
          value={form.pace_per_hour}
          onChange={(pace_per_hour) => set({ pace_per_hour })}
          min={1}
          max={1_000_000}
          allowDecimal={false}
          required
        />
      )}
      <ExpiryField
        label="Until"
        description="Ends automatically at this time. Empty: until an administrator ends it."
        value={form.expires_at}
        onChange={(expires_at) => set({ expires_at })}
      />
      <PublicNoteField value={form.public_note} onChange={(public_note) => set({ public_note })} />
    </>
  )
}

export function PublicNoteField({ value, onChange }: { value: string; onChange: (note: string) => void }) {
  return (
    <TextInput
      label="Public note"
      description="Optional. The members of the project see this note. They never see the reason."
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      maxLength={500}
      autoComplete="off"
    />
  )
}
