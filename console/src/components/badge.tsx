import type { ReactNode } from 'react'
import classes from './badge.module.css'
import type { Tone } from './tone.ts'

/** A state in one word. The colour only reinforces the word. */
export function Badge({ tone = 'calm', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className={classes.badge} data-tone={tone}>
      {children}
    </span>
  )
}

const tones: Record<string, Tone> = {
  verified: 'good',
  delivered: 'good',
  active: 'good',
  registered: 'good',
  sent: 'good',
  trialing: 'calm',
  pending: 'warn',
  deferred: 'warn',
  held: 'warn',
  past_due: 'warn',
  paused: 'warn',
  given_up: 'bad',
  gone: 'bad',
  failed: 'bad',
  bounced: 'bad',
  complained: 'bad',
  canceled: 'bad',
  error: 'bad',
}

/** For the API's statuses, outcomes and states. */
export function Status({ value }: { value: string }) {
  return <Badge tone={tones[value] ?? 'calm'}>{value.replaceAll('_', ' ')}</Badge>
}

/** Below 60 a project needs attention; 80 and above is good. */
export const toneOfScore = (score: number): Tone => (score >= 80 ? 'good' : score >= 60 ? 'warn' : 'bad')
