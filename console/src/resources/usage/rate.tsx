import { Badge } from '../../components/badge.tsx'
import { decimal } from '../../components/numbers.ts'
import { toneOfRate } from './mail-charts.tsx'

/** A rate in percent. A badge if mailbox providers start to reject mail at this rate. */
export function Rate({ kind, rate }: { kind: 'bounced' | 'complained'; rate: number | null | undefined }) {
  const tone = typeof rate === 'number' ? toneOfRate(kind, rate / 100) : undefined
  return tone === undefined ? rateText(rate) : <Badge tone={tone}>{rateText(rate)}</Badge>
}

export const rateText = (rate: number | null | undefined): string =>
  typeof rate === 'number' ? `${decimal(rate)} %` : '–'
