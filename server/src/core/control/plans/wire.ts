import Type, { type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../shared/wire.ts'

/** A plan sets a project's limits and price. The current plan's limits apply, see core/control/projects. */
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
    price: Type.Number({ minimum: 0, maximum: 9_999_999_999.99, description: 'At most two decimal places.' }),
    is_active: Type.Boolean({ description: 'An inactive plan cannot be assigned to more projects.' }),
  },
  { title: 'Plan', additionalProperties: false },
)

/** The editable fields, in the order of the wire format. */
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
