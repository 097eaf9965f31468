import {
  MultiSelect,
  NumberInput,
  type NumberInputProps,
  Select,
  SimpleGrid,
  Stack,
  TextInput,
} from '@mantine/core'
import type { ReactNode } from 'react'
import { useAnswer } from '../../../api/queries.ts'
import { duration } from '../../../components/numbers.ts'
import { type Kind, kindChoices } from '../../../resources/interventions/kinds.ts'
import { ProjectsSelect } from '../../components/projects-select.tsx'
import { PublicNoteField } from '../interventions/acts.tsx'
import { type PolicyForm, scoreWindow } from './form.ts'
import classes from './policy-form-page.module.css'
import { conditionOf, type Mode, modes, type Signal, signals } from './sentences.ts'

interface FieldsProps {
  form: PolicyForm
  set: (part: Partial<PolicyForm>) => void
}

/** All fields of a policy. */
export function PolicyFields(props: FieldsProps) {
  return (
    <Stack gap="lg">
      <Naming {...props} />
      <Condition {...props} />
      <Reaction {...props} />
      <Scope {...props} />
    </Stack>
  )
}

function FieldGroup({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className={classes.group}>
      <legend>{title}</legend>
      <Stack gap="sm">{children}</Stack>
    </fieldset>
  )
}

function Naming({ form, set }: FieldsProps) {
  return (
    <FieldGroup title="Policy">
      <TextInput
        label="Name"
        value={form.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        maxLength={100}
        required
      />
      <Select
        label="Mode"
        value={form.mode}
        onChange={(mode) => set({ mode: mode as Mode })}
        data={Object.entries(modes).map(([value, { label }]) => ({ value, label }))}
        description={modes[form.mode].effect}
        allowDeselect={false}
      />
    </FieldGroup>
  )
}

function Condition({ form, set }: FieldsProps) {
  const isScore = form.signal === 'score'
  return (
    <FieldGroup title="Condition">
      <Select
        label="Signal"
        value={form.signal}
        onChange={(signal) => set({ signal: signal as Signal })}
        data={Object.entries(signals).map(([value, { label }]) => ({ value, label }))}
        description={signals[form.signal].description}
        allowDeselect={false}
      />
      <SimpleGrid cols={2} spacing="sm">
        <NumberInput
          label={isScore ? 'Threshold (at most)' : 'Threshold (at least)'}
          value={form.threshold}
          onChange={(threshold) => set({ threshold })}
          suffix={signals[form.signal].unit}
          min={0}
          allowNegative={false}
          decimalScale={6}
          required
        />
        <NumberInput
          label="Minimum volume"
          value={form.minimum_volume}
          onChange={(minimum_volume) => set({ minimum_volume })}
          suffix=" recipients"
          {...whole}
          min={1}
        />
      </SimpleGrid>
      <Minutes
        label="Window"
        value={isScore ? scoreWindow : form.window_minutes}
        onChange={(window_minutes) => set({ window_minutes })}
        description={
          isScore
            ? 'The score is always computed from 7 days.'
            : 'The period over which the signal is computed.'
        }
        disabled={isScore}
        max={scoreWindow}
      />
      <output className={classes.sentence}>{sentenceOf(form)}</output>
    </FieldGroup>
  )
}

function sentenceOf(form: PolicyForm): string {
  const { signal, threshold, window_minutes, minimum_volume } = form
  if ([threshold, window_minutes, minimum_volume].includes('')) return ''
  return conditionOf({
    signal,
    threshold: Number(threshold),
    window_minutes: signal === 'score' ? scoreWindow : Number(window_minutes),
    minimum_volume: Number(minimum_volume),
  })
}

function Reaction({ form, set }: FieldsProps) {
  return (
    <FieldGroup title="Intervention">
      <Select
        label="Kind"
        value={form.kind}
        onChange={(kind) => set({ kind: kind as Kind })}
        data={kindChoices}
        allowDeselect={false}
      />
      {form.kind === 'pace' && (
        <NumberInput
          label="Recipients per hour"
          value={form.pace_per_hour}
          onChange={(pace_per_hour) => set({ pace_per_hour })}
          {...whole}
          min={1}
          max={1_000_000}
        />
      )}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <Minutes
          label="Duration"
          value={form.duration_minutes}
          onChange={(duration_minutes) => set({ duration_minutes })}
          description="When the intervention expires."
          empty="Until an administrator ends it"
          required={false}
        />
        <Minutes
          label="Cooldown"
          value={form.cooldown_minutes}
          onChange={(cooldown_minutes) => set({ cooldown_minutes })}
          description="Minimum between two firings."
        />
      </SimpleGrid>
      <PublicNoteField value={form.public_note} onChange={(public_note) => set({ public_note })} />
    </FieldGroup>
  )
}

function Scope({ form, set }: FieldsProps) {
  const plans = useAnswer('plans.list', { query: { limit: 200 } })
  return (
    <FieldGroup title="Projects">
      <MultiSelect
        label="Plans"
        placeholder={form.plan_ids.length === 0 ? 'All plans' : ''}
        value={form.plan_ids.map(String)}
        onChange={(ids) => set({ plan_ids: ids.map(Number) })}
        data={(plans.data?.data ?? []).map(({ id, name }) => ({
          value: String(id),
          label: `${name} (${id})`,
        }))}
        searchable
        clearable
      />
      <NumberInput
        label="Younger than"
        placeholder="Any age"
        value={form.younger_than_days}
        onChange={(younger_than_days) => set({ younger_than_days })}
        suffix=" days"
        {...whole}
        required={false}
        min={1}
        max={3650}
      />
      <ProjectsSelect
        label="Except"
        placeholder="No exceptions"
        value={form.except_project_ids}
        onChange={(except_project_ids) => set({ except_project_ids })}
      />
    </FieldGroup>
  )
}

const whole: NumberInputProps = {
  allowDecimal: false,
  allowNegative: false,
  thousandSeparator: ',',
  required: true,
}

/** Minutes, also shown in hours or days. */
function Minutes({
  value,
  description,
  empty,
  ...props
}: {
  label: string
  value: number | string
  onChange: (value: number | string) => void
  description: string
  /** What an empty field means. */
  empty?: string
  disabled?: boolean
  required?: boolean
  max?: number
}) {
  return (
    <NumberInput
      value={value}
      description={`${value === '' ? (empty ?? '–') : duration(Number(value))}. ${description}`}
      suffix=" minutes"
      {...whole}
      min={5}
      step={5}
      max={366 * 1440}
      {...props}
    />
  )
}
