import { durationText } from '../../shared/counts.ts'
import type { PolicyConfig, Signal } from './wire.ts'

/** Why a policy fired, as sentences for the audit log. */

interface Figures {
  at: Date
  value: number
  counted: number
  baseline: number
}

const rateNames = {
  bounce_rate: 'bounce rate',
  complaint_rate: 'complaint rate',
  failure_rate: 'failure rate',
  suppressed_rate: 'suppression rate',
} as const

const rounded = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
const show = (value: number): string => rounded.format(value)

export function firingSentence(
  {
    name,
    signal,
    window_minutes,
    threshold,
  }: Pick<PolicyConfig, 'name' | 'signal' | 'window_minutes' | 'threshold'>,
  figures: Figures,
): string {
  const [what, unit] = described(signal, figures)
  const at = `${figures.at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  return `${what} in the ${durationText(window_minutes)} before ${at}. The threshold of the policy "${name}" is ${show(threshold)}${unit}.`
}

function described(signal: Signal, { value, counted, baseline }: Figures): [text: string, unit: string] {
  if (signal === 'score')
    return [`The score was ${show(value)}, computed from ${show(baseline)} recipients`, '']
  if (signal === 'volume_spike') {
    return [
      `The volume was ${show(counted)} recipients, ${show(value)} times the usual ${show(baseline)}`,
      ' times',
    ]
  }
  return [
    `The ${rateNames[signal]} was ${show(value)} % (${show(counted)} of ${show(baseline)} recipients)`,
    ' %',
  ]
}
