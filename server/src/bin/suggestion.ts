import { distance } from '../platform/settings.ts'

/** ` Did you mean "queue"?` for a mistyped word; empty if no candidate is close. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const close = candidates
    .map((candidate) => ({ candidate, edits: distance(word, candidate) }))
    .filter(({ candidate, edits }) => edits <= Math.max(1, Math.floor(candidate.length / 3)))
    .sort((a, b) => a.edits - b.edits)
  return close[0] ? ` Did you mean "${close[0].candidate}"?` : ''
}
