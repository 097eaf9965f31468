/**
 * A contract removes objects that have been unused since an earlier release. A comment at the top of its file marks it
 * as a contract:
 *
 *   -- contract: since 0.3.0 nothing uses control.projects.colour
 */
const header = /^(?:--.*\n)*?-- contract: since (\d+\.\d+\.\d+) nothing uses \S/

/** The faults in a contract; undefined if the file is not a contract, empty if it is valid. */
export function contractFaults(sql: string, released: readonly string[]): string[] | undefined {
  const since = header.exec(sql)?.[1]
  if (since === undefined) return undefined
  return released.includes(since)
    ? []
    : [
        `it declares the object unused since ${since}, which is not released: the running release may still use it`,
      ]
}

/** The releases listed in the changelog's headings. */
export const releasesIn = (changelog: string): string[] =>
  [...changelog.matchAll(/^## \[?(\d+\.\d+\.\d+)\b/gm)].map(([, version = '']) => version)
