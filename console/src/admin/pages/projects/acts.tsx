import { NumberInput, Select, TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Plan, Project } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { Can } from '../../../components/can.tsx'
import { ExpiryField } from '../../../components/expiry-field.tsx'
import type { Act, Step } from '../../act/act.ts'
import { UserSelect } from '../../components/user-select.tsx'
import { PublicNoteField } from '../interventions/acts.tsx'

const baseOf = (loaded: Answer<Project>) => ({
  loaded,
  refetch: () => callForVersion('projects.show', { path: { project_id: loaded.data.id } }),
})

export const createProject = (
  done: (made: Project) => void,
): Act<'projects.create', undefined, { name: string; user_id: number | null; plan_id: string | null }> => ({
  operation: 'projects.create',
  path: {},
  title: 'New project',
  button: 'Create project',
  success: 'Project created',
  base: nothing,
  form: () => ({ name: '', user_id: null, plan_id: null }),
  steps: [
    {
      title: 'Project',
      fields: ({ form, set }) => (
        <>
          <TextInput
            label="Name"
            value={form.name}
            onChange={(event) => set({ name: event.currentTarget.value })}
            required
            data-autofocus
          />
          <UserSelect label="Owner" value={form.user_id} onChange={(user_id) => set({ user_id })} />
          <PlanSelect label="Plan" value={form.plan_id} onChange={(plan_id) => set({ plan_id })} isRequired />
        </>
      ),
    },
  ],
  body: ({ name, user_id, plan_id }) =>
    name !== '' && user_id !== null && plan_id !== null
      ? { name, user_id, plan_id: Number(plan_id) }
      : undefined,
  done,
})

export interface LockForm {
  expires_at: string
  public_note: string
}

/** Locks the project, or ends all its locks. Only `interventions.create` takes a public note. */
export const lockProject = (
  loaded: Answer<Project>,
): Act<'projects.edit' | 'interventions.create', Project, LockForm> => {
  const { id, name, is_locked } = loaded.data
  return {
    operation: ({ public_note }) => (public_note.trim() ? 'interventions.create' : 'projects.edit'),
    path: { project_id: id },
    title: is_locked ? `Unlock ${name}` : `Lock ${name}`,
    button: is_locked ? 'Unlock project' : 'Lock project',
    success: is_locked ? 'Project unlocked' : 'Project locked',
    isDangerous: !is_locked,
    focusesReason: true,
    base: baseOf(loaded),
    form: () => ({ expires_at: '', public_note: '' }),
    ...(!is_locked && { steps: [lockStep] }),
    body: ({ expires_at, public_note }) =>
      public_note.trim()
        ? { kind: 'lock', public_note: public_note.trim(), expires_at: expires_at || null }
        : { is_locked: !is_locked, ...(expires_at && { expires_at }) },
  }
}

const lockStep: Step<Project, LockForm> = {
  title: 'Lock',
  fields: ({ form, set }) => <LockFields form={form} set={set} />,
}

export function LockFields({ form, set }: { form: LockForm; set: (part: Partial<LockForm>) => void }) {
  return (
    <>
      <ExpiryField
        label="Until"
        description="Optional. The lock ends automatically at this time."
        value={form.expires_at}
        onChange={(expires_at) => set({ expires_at })}
      />
      <PublicNoteField value={form.public_note} onChange={(public_note) => set({ public_note })} />
    </>
  )
}

const statuses = ['trialing', 'active', 'past_due', 'canceled', 'paused'] as const
type Status = (typeof statuses)[number]

interface ProjectForm {
  name: string
  user_id: number | null
  reputation_score: number | string
  allow_service_mta: string
  plan_id: string | null
  admin_plan_id: string | null
  admin_subscription_status: Status | null
  /** For the temporary fields that are changed. */
  expires_at: string
}

/** Fields that can return to their previous values automatically. */
const temporaryFields = [
  'reputation_score',
  'allow_service_mta',
  'admin_plan_id',
  'admin_subscription_status',
]

/** The edited fields with their new values. */
function editsOf(form: ProjectForm, project: Project): [field: string, value: unknown][] {
  const values = {
    name: form.name,
    user_id: form.user_id,
    reputation_score: Number(form.reputation_score),
    allow_service_mta: form.allow_service_mta === 'true',
    plan_id: Number(form.plan_id),
    admin_plan_id: form.admin_plan_id === null ? null : Number(form.admin_plan_id),
    admin_subscription_status: form.admin_subscription_status,
  }
  return Object.entries(values).filter(([field, value]) => project[field as keyof Project] !== value)
}

export const editProject = (loaded: Answer<Project>): Act<'projects.edit', Project, ProjectForm> => ({
  operation: 'projects.edit',
  path: { project_id: loaded.data.id },
  title: `Edit ${loaded.data.name}`,
  button: 'Save changes',
  success: 'Project saved',
  base: baseOf(loaded),
  form: (project) => ({
    name: project.name,
    user_id: project.user_id,
    reputation_score: project.reputation_score,
    allow_service_mta: String(project.allow_service_mta),
    plan_id: String(project.plan_id),
    admin_plan_id: project.admin_plan_id === null ? null : String(project.admin_plan_id),
    admin_subscription_status: project.admin_subscription_status as Status | null,
    expires_at: '',
  }),
  steps: [
    {
      title: 'Project',
      fields: ({ form, set }) => (
        <>
          <Can change="projects.edit" field="name">
            <TextInput
              label="Name"
              value={form.name}
              onChange={(event) => set({ name: event.currentTarget.value })}
              maxLength={100}
              required
              data-autofocus
            />
          </Can>
          <Can change="projects.edit" field="user_id">
            <UserSelect
              label="Owner"
              description="Changing this transfers the project. The previous owner becomes an admin."
              value={form.user_id}
              onChange={(user_id) => set({ user_id })}
            />
          </Can>
          <Can change="projects.edit" field="reputation_score">
            <NumberInput
              label="Reputation score"
              description="0 to 100. Applied as an offset to the computed score."
              value={form.reputation_score}
              onChange={(reputation_score) => set({ reputation_score })}
              min={0}
              max={100}
              allowDecimal={false}
              required
            />
          </Can>
          <Can change="projects.edit" field="allow_service_mta">
            <Select
              label="Shared mail servers"
              value={form.allow_service_mta}
              onChange={(value) => set({ allow_service_mta: value ?? 'false' })}
              data={[
                { value: 'true', label: 'Allowed' },
                { value: 'false', label: 'Not allowed' },
              ]}
              allowDeselect={false}
            />
          </Can>
          <PlanSelect
            label="Billed plan"
            value={form.plan_id}
            onChange={(plan_id) => set({ plan_id })}
            isRequired
          />
          <PlanSelect
            label="Plan override"
            value={form.admin_plan_id}
            onChange={(admin_plan_id) => set({ admin_plan_id })}
          />
          <StatusSelect
            label="Subscription status override"
            value={form.admin_subscription_status}
            onChange={(admin_subscription_status) => set({ admin_subscription_status })}
            placeholder="No override: use billing"
          />
          <ExpiryField
            label="Revert at"
            description="Optional. At this time, changes to the score, the overrides and shared mail servers are reverted."
            value={form.expires_at}
            onChange={(expires_at) => set({ expires_at })}
          />
        </>
      ),
    },
  ],
  // Only fields that were edited are sent.
  body: (form, project) => {
    if (form.name === '' || form.user_id === null || form.reputation_score === '') return undefined
    const edits = editsOf(form, project)
    const isTemporary = form.expires_at !== '' && edits.some(([field]) => temporaryFields.includes(field))
    return { ...Object.fromEntries(edits), ...(isTemporary && { expires_at: form.expires_at }) }
  },
})

export function PlanSelect({
  label,
  value,
  onChange,
  isRequired = false,
}: {
  label: string
  value: string | null
  onChange: (value: string | null) => void
  isRequired?: boolean
}) {
  const plans = useAnswer('plans.list', { query: { limit: 200 } })
  const nameOf = ({ name, is_active }: Plan) => (is_active ? name : `${name} (inactive)`)
  return (
    <Select
      label={label}
      value={value}
      onChange={onChange}
      data={(plans.data?.data ?? []).map((plan) => ({ value: String(plan.id), label: nameOf(plan) }))}
      placeholder={isRequired ? 'Choose a plan' : 'No override: use billing'}
      required={isRequired}
      allowDeselect={!isRequired}
      clearable={!isRequired}
      searchable
    />
  )
}

interface BillingForm {
  billing_subscription_id: string
  billing_subscription_status: Status | null
  billing_product_id: string
}

export const setBilling = (loaded: Answer<Project>): Act<'projects.set-billing', Project, BillingForm> => ({
  operation: 'projects.set-billing',
  path: { project_id: loaded.data.id },
  title: `Billing for ${loaded.data.name}`,
  button: 'Set billing',
  success: 'Billing set',
  base: baseOf(loaded),
  form: (project) => ({
    billing_subscription_id: project.billing_subscription_id ?? '',
    billing_subscription_status: project.billing_subscription_status as Status | null,
    billing_product_id: project.billing_product_id ?? '',
  }),
  steps: [
    {
      title: 'Billing',
      fields: ({ form, set }) => (
        <>
          <TextInput
            label="Subscription"
            description="The billing provider’s subscription ID"
            value={form.billing_subscription_id}
            onChange={(event) => set({ billing_subscription_id: event.currentTarget.value })}
            data-autofocus
          />
          <StatusSelect
            label="Subscription status"
            value={form.billing_subscription_status}
            onChange={(billing_subscription_status) => set({ billing_subscription_status })}
            placeholder="None (not billed)"
          />
          <TextInput
            label="Product"
            description="The billing provider’s product ID"
            value={form.billing_product_id}
            onChange={(event) => set({ billing_product_id: event.currentTarget.value })}
          />
        </>
      ),
    },
  ],
  body: (form) => ({
    billing_subscription_id: form.billing_subscription_id || null,
    billing_subscription_status: form.billing_subscription_status,
    billing_product_id: form.billing_product_id || null,
  }),
})

function StatusSelect({
  label,
  value,
  onChange,
  placeholder,
}: {
  label: string
  value: Status | null
  onChange: (value: Status | null) => void
  placeholder: string
}) {
  return (
    <Select
      label={label}
      value={value}
      onChange={(chosen) => onChange(chosen as Status | null)}
      data={statuses.map((status) => ({ value: status, label: status.replaceAll('_', ' ') }))}
      placeholder={placeholder}
      clearable
    />
  )
}
