/**
 * A contract takes away what a release before has stopped using, and says so in the comment at the head of its file:
 *
 *   -- contract: since 0.3.0 nothing uses control.projects.colour
 */
const header = /^(?:--.*\n)*?-- contract: since (\d+\.\d+\.\d+) nothing uses \S/

/** What is wrong with its being one; undefined where it is none, and empty where it is one rightly. */
export function contractFaults(sql: string, released: readonly string[]): string[] | undefined {
  const since = header.exec(sql)?.[1]
  if (since === undefined) return undefined
  return released.includes(since)
    ? []
    : [
        `it says that nothing has used it since ${since}, which is no release yet: the one that runs may still do`,
      ]
}

/** As the changelog heads them. */
export const releasesIn = (changelog: string): string[] =>
  [...changelog.matchAll(/^## \[?(\d+\.\d+\.\d+)\b/gm)].map(([, version = '']) => version)
