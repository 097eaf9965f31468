import { NumberInput, Select, SimpleGrid, Textarea, TextInput } from '@mantine/core'
import { nothing } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Plan } from '../../../api/operations.gen.ts'
import type { Act, Step } from '../../act/act.ts'

const limits = [
  ['max_domains', 'Domains'],
  ['max_users', 'Members'],
  ['max_mails_per_day', 'Messages per day'],
  ['max_mails_per_month', 'Messages per month'],
] as const

type Limit = (typeof limits)[number][0]
type Level = Plan['support_level']

export const levels: Record<Level, string> = { community: 'Community', email: 'Email', priority: 'Priority' }

interface PlanForm extends Record<Limit, number | string> {
  name: string
  description: string
  support_level: Level
  billing_product_id: string
  price: number | string
  is_active: string
}

export const createPlan: Act<'plans.create', undefined, PlanForm> = {
  operation: 'plans.create',
  path: {},
  title: 'New plan',
  button: 'Create plan',
  success: 'Plan created',
  base: nothing,
  form: () => ({
    name: '',
    description: '',
    support_level: 'email',
    max_domains: '',
    max_users: '',
    max_mails_per_day: '',
    max_mails_per_month: '',
    billing_product_id: '',
    price: '',
    is_active: 'true',
  }),
  steps: planSteps(),
  body: (form) => valuesOf(form),
}

export const editPlan = (loaded: Answer<Plan>): Act<'plans.edit', Plan, PlanForm> => ({
  operation: 'plans.edit',
  path: { id: loaded.data.id },
  title: `Edit plan ${loaded.data.name}`,
  button: 'Save plan',
  success: 'Plan saved',
  base: { loaded, refetch: () => callForVersion('plans.show', { path: { id: loaded.data.id } }) },
  form: (plan) => ({
    ...plan,
    billing_product_id: plan.billing_product_id ?? '',
    is_active: String(plan.is_active),
  }),
  steps: planSteps(),
  // Only fields that were edited are sent.
  body: (form, plan) => {
    const values = valuesOf(form)
    if (!values) return undefined
    return Object.fromEntries(
      Object.entries(values).filter(([field, value]) => plan[field as keyof Plan] !== value),
    )
  },
})

function valuesOf(form: PlanForm) {
  if (form.name === '' || [form.price, ...limits.map(([limit]) => form[limit])].includes('')) return undefined
  return {
    name: form.name,
    description: form.description,
    support_level: form.support_level,
    max_domains: Number(form.max_domains),
    max_users: Number(form.max_users),
    max_mails_per_day: Number(form.max_mails_per_day),
    max_mails_per_month: Number(form.max_mails_per_month),
    billing_product_id: form.billing_product_id || null,
    price: Number(form.price),
    is_active: form.is_active === 'true',
  }
}

function planSteps<R>(): Step<R, PlanForm>[] {
  return [{ title: 'Plan', fields: PlanFields }]
}

function PlanFields({ form, set }: { form: PlanForm; set: (part: Partial<PlanForm>) => void }) {
  return (
    <>
      <TextInput
        label="Name"
        value={form.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        maxLength={100}
        required
        data-autofocus
      />
      <Textarea
        label="Description"
        value={form.description}
        onChange={(event) => set({ description: event.currentTarget.value })}
        maxLength={2000}
        rows={2}
      />
      <SimpleGrid cols={2}>
        {limits.map(([limit, label]) => (
          <NumberInput
            key={limit}
            label={`${label} (maximum)`}
            value={form[limit]}
            onChange={(value) => set({ [limit]: value })}
            min={0}
            max={Number.MAX_SAFE_INTEGER}
            allowDecimal={false}
            allowNegative={false}
            thousandSeparator=","
            required
          />
        ))}
        <NumberInput
          label="Price"
          value={form.price}
          onChange={(price) => set({ price })}
          min={0}
          max={9_999_999_999.99}
          decimalScale={2}
          allowNegative={false}
          thousandSeparator=","
          required
        />
        <TextInput
          label="Product"
          placeholder="None (not billed)"
          value={form.billing_product_id}
          onChange={(event) => set({ billing_product_id: event.currentTarget.value })}
          maxLength={255}
        />
        <Select
          label="Support"
          value={form.support_level}
          onChange={(level) => level && set({ support_level: level as Level })}
          data={Object.entries(levels).map(([value, label]) => ({ value, label }))}
          allowDeselect={false}
        />
        <Select
          label="Availability"
          value={form.is_active}
          onChange={(value) => value && set({ is_active: value })}
          data={[
            { value: 'true', label: 'Available to new projects' },
            { value: 'false', label: 'Not available to new projects' },
          ]}
          allowDeselect={false}
        />
      </SimpleGrid>
    </>
  )
}
