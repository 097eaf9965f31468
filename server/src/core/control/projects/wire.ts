import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { Plan } from '../plans/wire.ts'

/**
 * A customer's unit: it owns domains, endpoints, routes, members and API keys, has one owner (`user_id`), and is
 * on a plan. In force is the administrator's plan and subscription status where one is set, else billing's.
 */
export const subscriptionStatuses = ['trialing', 'active', 'past_due', 'canceled', 'paused'] as const
const SubscriptionStatus = oneOf(subscriptionStatuses)
const Score = Type.Integer({ minimum: 0, maximum: 100 })
const Count = Type.Integer({ minimum: 0 })

export const Project = Type.Object(
  {
    id: Type.Integer(),
    user_id: Type.Integer({ description: 'The owner.' }),
    reputation_score: Score,
    bounced: Count,
    failed: Count,
    complained: Count,
    name: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
    is_locked: Type.Boolean({ description: 'A locked project sends nothing; its mail is held.' }),
    allow_service_mta: Type.Boolean({ description: "Whether its domains may use the operator's own MTAs." }),
    plan_id: Type.Integer({ description: 'The plan that is billed.' }),
    admin_plan_id: nullable(
      Type.Integer({ description: 'Set by an administrator; applies instead of `plan_id`.' }),
    ),
    billing_subscription_id: nullable(Type.String()),
    billing_subscription_status: nullable(SubscriptionStatus),
    billing_product_id: nullable(Type.String()),
    admin_subscription_status: nullable(SubscriptionStatus),
    plan: Plan,
  },
  { title: 'Project', additionalProperties: false },
)

/** How lists can be sorted; `-` turns an order round. */
export type ProjectSort = `${'-' | ''}${'id' | 'name' | 'reputation_score'}`

export type SubscriptionStatus = (typeof subscriptionStatuses)[number]

/** What an administrator's edit can change. */
export const ProjectFields = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  user_id: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'The owner. Changing it transfers the project.',
  }),
  reputation_score: {
    ...Score,
    description: 'From 0 to 100; stored as a permanent offset to the computed score.',
  },
  is_locked: Type.Boolean({ description: 'A locked project sends nothing; its mail is held.' }),
  allow_service_mta: Type.Boolean({ description: "Whether its domains may use the operator's own MTAs." }),
  plan_id: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'The plan that is billed.',
  }),
  admin_plan_id: nullable(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Applies instead of the billed plan; null removes the override.',
    }),
  ),
  admin_subscription_status: nullable({
    ...SubscriptionStatus,
    description: "Applies instead of billing's status; null removes the override.",
  }),
}

/** What billing alone sets, as a whole. */
export const BillingFields = {
  billing_subscription_id: nullable(Type.String({ minLength: 1, maxLength: 255 })),
  billing_subscription_status: nullable(SubscriptionStatus),
  billing_product_id: nullable(Type.String({ minLength: 1, maxLength: 255 })),
}

const ConfigSchema = Type.Object({ ...ProjectFields, ...BillingFields })
export type ProjectConfig = Static<typeof ConfigSchema>
