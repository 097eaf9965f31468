import type { Chance } from '../../harness/random.ts'
import { absentId, weighted } from '../draw.ts'
import { hostileTexts, nameText } from '../texts.ts'
import { type Intent, namedIn } from './intent.ts'
import { isPrice } from './rules.ts'
import { editOutcome } from './targets.ts'
import { anId, aTime } from './unknown.ts'
import { findById, type GlobalResource, type View, type World } from './world.ts'

/** In wire order, without the fields that the service adds. */
export const planFields = [
  'name',
  'description',
  'support_level',
  'max_domains',
  'max_users',
  'max_mails_per_day',
  'max_mails_per_month',
  'billing_product_id',
  'price',
  'is_active',
] as const

type PlanBody = Partial<Record<(typeof planFields)[number], unknown>>

const limit = (chance: Chance): number =>
  weighted<() => number>(chance, [
    [6, () => chance.below(4)],
    [2, () => chance.below(1000)],
    [1, () => Number.MAX_SAFE_INTEGER - chance.below(2)],
  ])()

const price = (chance: Chance): number =>
  weighted<() => number>(chance, [
    [8, () => chance.below(100_000) / 100],
    [1, () => chance.pick([0, 0.01, 0.07, 0.29, 1.1, 1.15, 4.35, 1e9, 9_999_999_999.99, 8_999_999_999.98])],
    [1, () => chance.pick([0.001, 1.005, 1e-7, 0.1 + 0.2, 9_999_999_999.985])],
  ])()

export function planConfiguration(chance: Chance): Record<(typeof planFields)[number], unknown> {
  return {
    name: nameText(chance),
    description: chance.happens(0.8)
      ? chance.pick(['', 'For teams.', 'two\nlines'])
      : chance.pick(hostileTexts),
    support_level: chance.pick(['community', 'email', 'priority']),
    max_domains: limit(chance),
    max_users: limit(chance),
    max_mails_per_day: limit(chance),
    max_mails_per_month: limit(chance),
    billing_product_id: chance.pick([
      null,
      'prod_1',
      ' ',
      'p'.repeat(255),
      chance.pick(hostileTexts).slice(0, 255),
    ]),
    price: price(chance),
    is_active: chance.happens(0.8),
  }
}

/** The stored fields, or undefined if a rule rejects them. */
function kept(body: PlanBody): PlanBody | undefined {
  const named = namedIn(body as View)
  if (!named || (body.price !== undefined && !isPrice(Number(body.price)))) return undefined
  return { ...body, ...named }
}

export function createPlan(world: World, chance: Chance, body = planConfiguration(chance)): Intent {
  return {
    operation: 'plans.create',
    params: {},
    body,
    exists: () => true,
    target: null,
    outcome() {
      const plan = kept(body)
      if (!plan) return 'validation_failed'
      return {
        change: { type: 'plan', before: null, after: plan as View },
        response: onWire(plan, { id: anId, created_at: aTime, updated_at: aTime }),
        version: 1,
        commit(view: View) {
          const made: GlobalResource = { type: 'plan', id: Number(view['id']), version: 1, view, acts: [] }
          world.plans.push(made)
          return { acts: made.acts, id: made.id, location: `/v1/admin/plans/${made.id}` }
        },
      }
    },
  }
}

function onWire(plan: PlanBody, added: { id: unknown; created_at: unknown; updated_at: unknown }): View {
  const { id, created_at, updated_at } = added
  const { max_domains, max_users, max_mails_per_day, max_mails_per_month } = plan
  const { name, description, support_level, billing_product_id, price, is_active } = plan
  return {
    id,
    max_domains,
    max_users,
    max_mails_per_day,
    max_mails_per_month,
    name,
    description,
    support_level,
    billing_product_id,
    created_at,
    updated_at,
    price,
    is_active,
  }
}

export function editPlan(world: World, chance: Chance): Intent {
  const id = chance.happens(0.04) ? absentId(chance) : chance.pick(world.plans).id
  const target = findById(world.plans, id) ?? null
  const wanted = planConfiguration(chance)
  // Setting a field to its current value is not a change.
  const known = chance.happens(0.15) && target ? target.view : wanted
  const count = chance.happens(0.05) ? 0 : 1 + chance.below(3)
  const names = Array.from({ length: count }, () => chance.pick(planFields))
  const body = Object.fromEntries(names.map((name) => [name, (known as View)[name]]))
  return {
    operation: 'plans.edit',
    params: { id },
    body,
    exists: () => target !== null,
    target,
    outcome() {
      if (!target) return 'not_found'
      const changes = kept(body)
      if (!changes) return 'validation_failed'
      return editOutcome(target, target.acts, changes as View)
    },
  }
}
