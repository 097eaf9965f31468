import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/** What a project may do and what it costs. Limits hold for the plan in force, see core/control/projects. */
const Limit = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const Plan = Type.Object(
  {
    id: Type.Integer(),
    max_domains: Limit,
    max_users: Limit,
    max_mails_per_day: Limit,
    max_mails_per_month: Limit,
    name: Type.String(),
    description: Type.String(),
    support_level: oneOf(['community', 'email', 'priority']),
    billing_product_id: nullable(Type.String()),
    created_at: Timestamp,
    updated_at: Timestamp,
    price: Type.Number({ minimum: 0, maximum: 9_999_999_999.99, description: 'At most two decimals.' }),
    is_active: Type.Boolean({ description: 'An inactive plan cannot be newly assigned.' }),
  },
  { title: 'Plan', additionalProperties: false },
)

/** What can be set, in the order of the wire. */
export const PlanFields = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  description: Type.String({ maxLength: 2000 }),
  support_level: Plan.properties.support_level,
  max_domains: Limit,
  max_users: Limit,
  max_mails_per_day: Limit,
  max_mails_per_month: Limit,
  billing_product_id: nullable(Type.String({ minLength: 1, maxLength: 255 })),
  price: Plan.properties.price,
  is_active: Plan.properties.is_active,
}

const PlanConfigSchema = Type.Object(PlanFields)
export type PlanConfig = Static<typeof PlanConfigSchema>
