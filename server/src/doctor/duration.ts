/** `90 seconds`, `5 minutes`, `3 hours`, `4 days`. */
export function durationText(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} seconds`
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`
  if (seconds < 2 * 86_400) return `${Math.round(seconds / 3600)} hours`
  return `${Math.round(seconds / 86_400)} days`
}
