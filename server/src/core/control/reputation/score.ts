/**
 * A project's reputation score: 100 minus penalties for bounces, complaints and failures in the last seven days.
 * docs/operations/reputation.md documents it for operators.
 *
 * The thresholds follow the requirements of large mailbox providers: bounces below 2 %, complaints below 0.1 % and never
 * 0.3 % or more.
 */
export interface WeekOfMail {
  sent: number
  delivered: number
  bounced: number
  failed: number
  complained: number
}

interface Penalty {
  /** The rate at which the penalty starts, and the rate at which it reaches its maximum. */
  from: number
  to: number
  maxPoints: number
  /** The rate is computed over at least this volume, because small volumes produce extreme rates. */
  leastVolume: number
}

/** No score is computed below this volume, because one mistyped address in ten messages says nothing about a sender. */
export const minVolume = 50

export const penalties: Record<'bounced' | 'complained' | 'failed', Penalty> = {
  bounced: { from: 0.02, to: 0.1, maxPoints: 100, leastVolume: minVolume },
  complained: { from: 0.001, to: 0.005, maxPoints: 100, leastVolume: 500 },
  // Often caused by a receiving server that was down.
  failed: { from: 0.1, to: 0.5, maxPoints: 50, leastVolume: minVolume },
}

/** The number of messages handed off to the MTA, or rejected before the handoff. */
export const volumeOf = ({ sent, delivered, bounced, failed }: WeekOfMail): number =>
  Math.max(sent, delivered + bounced + failed)

/** What one kind of result takes off the score. */
export interface ScorePart {
  kind: keyof typeof penalties
  count: number
  /** What the rate is relative to. */
  volume: number
  rate: number
  penalty: Penalty
  points: number
}

/** The parts of the score. With too little mail, all points are zero. */
export function scorePartsOf(week: WeekOfMail): ScorePart[] {
  const total = volumeOf(week)
  return (Object.keys(penalties) as (keyof typeof penalties)[]).map((kind) => {
    const penalty = penalties[kind]
    const count = week[kind]
    const volume = Math.max(total, penalty.leastVolume)
    const rate = count / volume
    const share = Math.min(1, Math.max(0, (rate - penalty.from) / (penalty.to - penalty.from)))
    return { kind, count, volume, rate, penalty, points: total < minVolume ? 0 : penalty.maxPoints * share }
  })
}

/** score-expression.ts computes it in the same order, so that both round alike. */
export const scoreOf = (week: WeekOfMail): number =>
  Math.max(0, Math.floor(scorePartsOf(week).reduce((score, { points }) => score - points, 100) + 0.5))

/**
 * When the score can change even if no further bounce, failure or complaint occurs. `soon`: with every delivered message,
 * or with the message that reaches the minimum volume. `tomorrow`: when the seven-day window moves.
 */
export function recountOf(week: WeekOfMail): 'soon' | 'tomorrow' | 'never' {
  if (week.bounced + week.failed + week.complained === 0) return 'never'
  return scoreOf(week) < 100 || volumeOf(week) < minVolume ? 'soon' : 'tomorrow'
}
