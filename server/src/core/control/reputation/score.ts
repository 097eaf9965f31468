/**
 * A project's score follows from what became of its mail in the last seven days: 100 minus what its bounces, complaints
 * and failures cost. docs/operations/reputation.md tells operators the same.
 *
 * The thresholds are what large mailbox providers ask of senders: bounces below 2 %, complaints below 0.1 % and never
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
  /** The rate up to which nothing is lost, and the one from which on all of it is. */
  from: number
  to: number
  most: number
  /** Few mails make wild rates: the count is measured against at least so many. */
  leastVolume: number
}

/** Below it nothing is judged: one mistyped address among ten says nothing about a sender. */
const judgedFrom = 50

const penalties: Record<'bounced' | 'complained' | 'failed', Penalty> = {
  bounced: { from: 0.02, to: 0.1, most: 100, leastVolume: judgedFrom },
  complained: { from: 0.001, to: 0.005, most: 100, leastVolume: 500 },
  // Often the fault of a receiver who was away.
  failed: { from: 0.1, to: 0.5, most: 50, leastVolume: judgedFrom },
}

/** What was handed over, or refused before that could be. */
const volumeOf = ({ sent, delivered, bounced, failed }: WeekOfMail): number =>
  Math.max(sent, delivered + bounced + failed)

export function scoreOf(week: WeekOfMail): number {
  const volume = volumeOf(week)
  if (volume < judgedFrom) return 100
  let score = 100
  for (const [kind, { from, to, most, leastVolume }] of Object.entries(penalties)) {
    const rate = week[kind as keyof typeof penalties] / Math.max(volume, leastVolume)
    score -= most * Math.min(1, Math.max(0, (rate - from) / (to - from)))
  }
  return Math.max(0, Math.round(score))
}

/**
 * When the score may be another although nothing bad was told since. `soon`: with every mail that goes well, or with the
 * first that makes a judgement possible. `tomorrow`: when the seven days have moved on.
 */
export function recountOf(week: WeekOfMail): 'soon' | 'tomorrow' | 'never' {
  if (week.bounced + week.failed + week.complained === 0) return 'never'
  return scoreOf(week) < 100 || volumeOf(week) < judgedFrom ? 'soon' : 'tomorrow'
}
