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
const minVolume = 50

const penalties: Record<'bounced' | 'complained' | 'failed', Penalty> = {
  bounced: { from: 0.02, to: 0.1, maxPoints: 100, leastVolume: minVolume },
  complained: { from: 0.001, to: 0.005, maxPoints: 100, leastVolume: 500 },
  // Often caused by a receiving server that was down.
  failed: { from: 0.1, to: 0.5, maxPoints: 50, leastVolume: minVolume },
}

/** The number of messages handed off to the MTA, or rejected before the handoff. */
const volumeOf = ({ sent, delivered, bounced, failed }: WeekOfMail): number =>
  Math.max(sent, delivered + bounced + failed)

export function scoreOf(week: WeekOfMail): number {
  const volume = volumeOf(week)
  if (volume < minVolume) return 100
  let score = 100
  for (const [kind, { from, to, maxPoints, leastVolume }] of Object.entries(penalties)) {
    const rate = week[kind as keyof typeof penalties] / Math.max(volume, leastVolume)
    score -= maxPoints * Math.min(1, Math.max(0, (rate - from) / (to - from)))
  }
  return Math.max(0, Math.round(score))
}

/**
 * When the score can change even if no further bounce, failure or complaint occurs. `soon`: with every delivered message,
 * or with the message that reaches the minimum volume. `tomorrow`: when the seven-day window moves.
 */
export function recountOf(week: WeekOfMail): 'soon' | 'tomorrow' | 'never' {
  if (week.bounced + week.failed + week.complained === 0) return 'never'
  return scoreOf(week) < 100 || volumeOf(week) < minVolume ? 'soon' : 'tomorrow'
}
