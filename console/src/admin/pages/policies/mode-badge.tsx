import type { Policy } from '../../../api/operations.gen.ts'
import { Badge } from '../../../components/badge.tsx'
import { type Mode, modes } from './sentences.ts'

export function ModeBadge({ mode }: { mode: Mode }) {
  return <Badge tone={modes[mode].tone}>{modes[mode].label}</Badge>
}

export function TrippedBadge({ policy: { tripped_at } }: { policy: Policy }) {
  return tripped_at !== null && <Badge tone="bad">tripped</Badge>
}
