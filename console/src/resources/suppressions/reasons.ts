import type { Suppression } from '../../api/operations.gen.ts'

export const suppressionReasons: Record<Suppression['reason'], string> = {
  bounce: 'Hard bounce',
  complaint: 'Spam complaint',
  manual: 'Added manually',
}
