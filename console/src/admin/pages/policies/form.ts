import { nothing } from '../../../act/base.ts'
import type { Answer, BodyOf } from '../../../api/client.ts'
import type { Policy } from '../../../api/operations.gen.ts'
import type { Act } from '../../act/act.ts'
import { baseOf } from './acts.ts'
import { backtestTimeoutMs } from './policies.ts'
import type { Mode, Signal } from './sentences.ts'

/** A number as it is typed. */
type Typed = number | string

export interface PolicyForm {
  name: string
  mode: Mode
  signal: Signal
  threshold: Typed
  window_minutes: Typed
  minimum_volume: Typed
  kind: Policy['intervention']['kind']
  pace_per_hour: Typed
  /** Empty: until an administrator ends it. */
  duration_minutes: Typed
  public_note: string
  cooldown_minutes: Typed
  plan_ids: number[]
  younger_than_days: Typed
  except_project_ids: number[]
}

type Config = Omit<BodyOf<'policies.create'>, 'reason'>

/** The score is always computed from seven days. */
export const scoreWindow = 7 * 1440

/** The preview contains a backtest. */
const preview = {
  isPreviewedOnRequest: true,
  previewTimeoutMs: backtestTimeoutMs,
  isReasonRequired: () => true,
}

export const createPolicy: Act<'policies.create', undefined, PolicyForm> = {
  operation: 'policies.create',
  path: {},
  title: 'New policy',
  button: 'Create policy',
  success: 'Policy created',
  ...preview,
  base: nothing,
  form: () => ({
    name: '',
    mode: 'shadow',
    signal: 'bounce_rate',
    threshold: 10,
    window_minutes: 1440,
    minimum_volume: 500,
    kind: 'pace',
    pace_per_hour: 500,
    duration_minutes: 1440,
    public_note: '',
    cooldown_minutes: 1440,
    plan_ids: [],
    younger_than_days: '',
    except_project_ids: [],
  }),
  body: configOf,
}

export const editPolicy = (loaded: Answer<Policy>): Act<'policies.edit', Policy, PolicyForm> => ({
  operation: 'policies.edit',
  path: { id: loaded.data.id },
  title: `Edit ${loaded.data.name}`,
  button: 'Save policy',
  success: 'Policy saved',
  ...preview,
  base: baseOf(loaded),
  form: ({ applies_to, intervention, ...policy }) => ({
    ...policy,
    kind: intervention.kind,
    pace_per_hour: intervention.pace_per_hour ?? 500,
    duration_minutes: intervention.duration_minutes ?? '',
    public_note: intervention.public_note ?? '',
    plan_ids: applies_to.plan_ids ?? [],
    younger_than_days: applies_to.younger_than_days ?? '',
    except_project_ids: applies_to.except_project_ids,
  }),
  // Only fields that were edited are sent: sending the mode also resets the breaker.
  body: (form, policy) => {
    const config = configOf(form)
    if (!config) return undefined
    const edited = Object.entries(config).filter(
      ([field, value]) => JSON.stringify(policy[field as keyof Config]) !== JSON.stringify(value),
    )
    return Object.fromEntries(edited)
  },
})

/** What the server expects; undefined while a field is missing. */
function configOf(form: PolicyForm): Config | undefined {
  const isPace = form.kind === 'pace'
  const needed = [
    ...[form.name.trim(), form.threshold, form.window_minutes, form.minimum_volume, form.cooldown_minutes],
    ...(isPace ? [form.pace_per_hour] : []),
  ]
  if (needed.includes('')) return undefined
  return {
    name: form.name,
    mode: form.mode,
    applies_to: {
      plan_ids: form.plan_ids.length === 0 ? null : form.plan_ids,
      younger_than_days: numberOrNull(form.younger_than_days),
      except_project_ids: form.except_project_ids,
    },
    signal: form.signal,
    window_minutes: form.signal === 'score' ? scoreWindow : Number(form.window_minutes),
    threshold: Number(form.threshold),
    minimum_volume: Number(form.minimum_volume),
    intervention: {
      kind: form.kind,
      pace_per_hour: isPace ? Number(form.pace_per_hour) : null,
      duration_minutes: numberOrNull(form.duration_minutes),
      public_note: form.public_note.trim() || null,
    },
    cooldown_minutes: Number(form.cooldown_minutes),
  }
}

const numberOrNull = (typed: Typed): number | null => (typed === '' ? null : Number(typed))
