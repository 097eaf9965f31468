import Type from 'typebox'
import { backtestPolicy } from '../../core/control/policies/backtest.ts'
import { findPolicy, policyConfig } from '../../core/control/policies/policies.ts'
import { Backtest } from '../../core/control/policies/wire.ts'
import { ItemParams } from '../../platform/http/parameters.ts'
import { adminQuery } from '../operation.ts'

export const backtestDays = 30
/** With four weeks and a window of seven days before, all counters that are retained. */
const maxBacktestDays = 55

export const backtestPolicyQuery = adminQuery({
  id: 'policies.backtest',
  path: '/admin/policies/:id/backtest',
  summary: 'Backtest a policy',
  description:
    'Returns when the policy would have fired in the last `days` days, computed from the five-minute counters. Its mode is ignored, and nothing is changed. Previews of `policies.create` and `policies.edit` contain the backtest of the new configuration.',
  params: ItemParams,
  query: {
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxBacktestDays,
        default: backtestDays,
        description: 'How many days the backtest goes back.',
      }),
    ),
  },
  answer: Backtest,
  hasHead: false,
  async run({ db, mailDbFor, params, query }) {
    const row = await db.read((tx) => findPolicy(tx, params.id))
    return { answer: await backtestPolicy({ db, mailDbFor }, policyConfig(row), query.days ?? backtestDays) }
  },
})
