/**
 * A contract removes what an earlier release has stopped using. The comment at the head of its file says so:
 *
 *   -- contract: since 0.3.0 nothing uses control.projects.colour
 */
const header = /^(?:--.*\n)*?-- contract: since (\d+\.\d+\.\d+) nothing uses \S/

/** Faults of a contract; undefined if the file is not a contract, empty if it is valid. */
export function contractFaults(sql: string, released: readonly string[]): string[] | undefined {
  const since = header.exec(sql)?.[1]
  if (since === undefined) return undefined
  return released.includes(since)
    ? []
    : [
        `it says that nothing has used it since ${since}, which is not released: the running release may still use it`,
      ]
}

/** As the changelog heads them. */
export const releasesIn = (changelog: string): string[] =>
  [...changelog.matchAll(/^## \[?(\d+\.\d+\.\d+)\b/gm)].map(([, version = '']) => version)
