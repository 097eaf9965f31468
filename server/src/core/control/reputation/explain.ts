import Type, { type Static } from 'typebox'
import type { ReadTx } from '../../../platform/db/db.ts'
import { oneOf } from '../../shared/wire.ts'
import { totalsOf } from './reputation.sql.ts'
import { minVolume, scoreOf, scorePartsOf, volumeOf, type WeekOfMail } from './score.ts'

/** The parts of a project's score, from its current counters. */
const rate = (description: string) => Type.Number({ description: `${description}, from 0 to 1.` })

const Part = Type.Object(
  {
    kind: oneOf(['bounced', 'complained', 'failed']),
    count: Type.Integer({ description: 'Results of this kind in the last seven days.' }),
    volume: Type.Integer({
      description: 'What the rate is relative to: at least 500 for complaints and 50 for the others.',
    }),
    rate: rate('`count` divided by `volume`'),
    tolerated_rate: rate('Up to this rate, no points are deducted'),
    worst_rate: rate('From this rate on, the maximum is deducted'),
    max_points: Type.Integer(),
    points: Type.Number({ description: 'The points deducted from 100.' }),
  },
  { additionalProperties: false },
)

export const Reputation = Type.Object(
  {
    project_id: Type.Integer(),
    volume: Type.Integer({
      description: 'Messages in the last seven days: handed over, or with a result, whichever is greater.',
    }),
    min_volume: Type.Integer({ description: 'With fewer messages, no points are deducted.' }),
    parts: Type.Array(Part),
    computed_score: Type.Integer({ description: '100 minus the points of all parts, rounded, at least 0.' }),
    score_offset: Type.Integer({ description: 'Set by an administrator, and added to the computed score.' }),
    reputation_score: Type.Integer({
      description:
        'The sum, limited to the range from 0 to 100. The project shows the same score within a minute.',
    }),
  },
  { title: 'Reputation', additionalProperties: false },
)

/** Runs in the mail database. */
export async function findWeek(mail: ReadTx, projectId: number): Promise<WeekOfMail> {
  const [totals] = await totalsOf(mail, [projectId])
  if (!totals) throw new Error(`project ${projectId} has no totals`)
  return totals.week
}

export function explainScore(
  { id, score_offset }: { id: number; score_offset: number },
  week: WeekOfMail,
): Static<typeof Reputation> {
  const computed = scoreOf(week)
  return {
    project_id: id,
    volume: volumeOf(week),
    min_volume: minVolume,
    parts: scorePartsOf(week).map(({ kind, count, volume, rate, penalty, points }) => ({
      ...{ kind, count, volume, rate },
      tolerated_rate: penalty.from,
      worst_rate: penalty.to,
      max_points: penalty.maxPoints,
      points,
    })),
    computed_score: computed,
    score_offset,
    reputation_score: Math.min(100, Math.max(0, computed + score_offset)),
  }
}
