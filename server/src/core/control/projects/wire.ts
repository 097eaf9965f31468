import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'
import { roles } from '../members/wire.ts'
import { Plan } from '../plans/wire.ts'

/**
 * A project has domains, endpoints, routes, members, API keys, one owner (`user_id`) and a plan. A plan or
 * subscription status set by an administrator overrides the one from billing.
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
    allow_service_mta: Type.Boolean({
      description: "Whether the project's domains may use the operator's own MTAs.",
    }),
    plan_id: Type.Integer({ description: 'The plan that is billed.' }),
    admin_plan_id: nullable(Type.Integer({ description: 'Set by an administrator; overrides `plan_id`.' })),
    billing_subscription_id: nullable(Type.String()),
    billing_subscription_status: nullable(SubscriptionStatus),
    billing_product_id: nullable(Type.String()),
    admin_subscription_status: nullable(SubscriptionStatus),
    plan: Plan,
  },
  { title: 'Project', additionalProperties: false },
)

const CustomerPlan = Type.Pick(
  Plan,
  [
    ...(['id', 'name', 'description', 'support_level'] as const),
    ...(['max_domains', 'max_users', 'max_mails_per_day', 'max_mails_per_month'] as const),
  ],
  { title: 'CustomerPlan', additionalProperties: false, description: 'The plan in force.' },
)

/** A project as its members see it. */
export const CustomerProject = Type.Object(
  {
    id: Project.properties.id,
    name: Project.properties.name,
    user_id: Project.properties.user_id,
    role: oneOf(roles, { description: 'Your role in the project.' }),
    is_locked: Project.properties.is_locked,
    allow_service_mta: Project.properties.allow_service_mta,
    reputation_score: {
      ...Score,
      description: 'From 0 to 100, computed from the results of the last seven days. 100 is the best.',
    },
    plan: CustomerPlan,
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'CustomerProject', additionalProperties: false },
)

/** Sort orders of lists. A leading `-` reverses the order. */
export type ProjectSort = `${'-' | ''}${'id' | 'name' | 'reputation_score'}`

export type SubscriptionStatus = (typeof subscriptionStatuses)[number]

/** The fields that an administrator can edit. */
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
  allow_service_mta: Type.Boolean({
    description: "Whether the project's domains may use the operator's own MTAs.",
  }),
  plan_id: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'The plan that is billed.',
  }),
  admin_plan_id: nullable(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Overrides the billed plan; null removes the override.',
    }),
  ),
  admin_subscription_status: nullable({
    ...SubscriptionStatus,
    description: 'Overrides the subscription status set by billing; null removes the override.',
  }),
}

/** The fields that only billing sets, always together. */
export const BillingFields = {
  billing_subscription_id: nullable(Type.String({ minLength: 1, maxLength: 255 })),
  billing_subscription_status: nullable(SubscriptionStatus),
  billing_product_id: nullable(Type.String({ minLength: 1, maxLength: 255 })),
}

const ConfigSchema = Type.Object({ ...ProjectFields, ...BillingFields })
export type ProjectConfig = Static<typeof ConfigSchema>
