import { globSync } from 'node:fs'
import path from 'node:path'

/**
 * Every page of the site, in the order of the sidebars, with its readers. `npm run check` fails if a page of docs/ is missing.
 * The pages of the API reference are generated (reference/) and are not listed.
 */
export type Reader = 'self-hosters' | 'platform developers' | 'operators on call' | 'contributors'

export interface Page {
  /** Relative to the root of the repository. */
  file: string
  /** Its place in the site. */
  path: string
  section: string
  /** A heading in the section's sidebar. */
  group: string
  readers: Reader[]
}

export const root = path.resolve(import.meta.dirname, '..')

const S: Reader = 'self-hosters'
const P: Reader = 'platform developers'
const O: Reader = 'operators on call'
const C: Reader = 'contributors'

type Row = [file: string, ...readers: Reader[]]

const table: Record<string, Record<string, Row[]>> = {
  Start: {
    Start: [
      ['docs/index.md', S, P, O],
      ['docs/guide/install.md', S],
    ],
  },
  Guide: {
    'Send and receive': [
      ['docs/guide/sending.md', P],
      ['docs/guide/submission.md', P],
      ['docs/guide/domains.md', P, S],
      ['docs/guide/webhooks.md', P],
      ['docs/guide/inbound.md', P],
    ],
    'Projects and access': [
      ['docs/guide/customers.md', P],
      ['docs/guide/signing-in.md', P],
      ['docs/guide/limits-and-plans.md', P, S],
      ['docs/guide/api-versions.md', P],
      ['docs/guide/app.md', P, S],
    ],
    Administer: [
      ['docs/guide/console.md', O, S],
      ['docs/guide/administering.md', O, S],
    ],
  },
  Operations: {
    Incidents: [
      ['docs/operations/troubleshooting.md', O],
      ['docs/operations/alerts.md', O],
      ['docs/operations/overview.md', O],
      ['docs/operations/abuse-reports.md', O],
      ['docs/operations/worker.md', O],
      ['docs/operations/webhooks.md', O],
    ],
    'Set up': [
      ['docs/operations/command.md', S, O],
      ['docs/operations/configuration.md', S, O],
      ['docs/operations/database.md', S],
      ['docs/operations/systemd.md', S],
      ['docs/operations/containers.md', S],
      ['docs/operations/front-end.md', S],
      ['docs/operations/network.md', S],
      ['docs/operations/secrets.md', S, O],
      ['docs/operations/single-sign-on.md', S],
      ['docs/operations/limits.md', S, O],
    ],
    Mail: [
      ['docs/operations/mta.md', S, O],
      ['docs/operations/ses.md', S],
      ['docs/operations/kumomta.md', S],
      ['docs/operations/feedback.md', S, O],
      ['docs/operations/submission.md', S],
      ['docs/operations/inbound.md', S],
      ['docs/operations/system-mail.md', S, O],
    ],
    'Abuse and reputation': [
      ['docs/operations/policies.md', O, S],
      ['docs/operations/reputation.md', O],
      ['docs/operations/mailbox-providers.md', O],
      ['docs/operations/audit.md', O, S],
      ['docs/operations/evidence.md', O],
    ],
    Observe: [
      ['docs/operations/metrics.md', O, S],
      ['docs/operations/logs.md', O],
      ['docs/operations/tracing.md', O],
    ],
    'Maintain and grow': [
      ['docs/operations/backup.md', S, O],
      ['docs/operations/releases.md', S, O],
      ['docs/operations/upgrade.md', S],
      ['docs/operations/high-availability.md', S, O],
      ['docs/operations/scale.md', S],
      ['docs/operations/cost-of-a-mail.md', S],
    ],
  },
  Security: {
    Security: [
      ['docs/security.md', S, C],
      ['SECURITY.md', S, C],
    ],
  },
  Decisions: {
    Decisions: [
      ['docs/decisions/README.md', C],
      ...globSync('docs/decisions/0*.md', { cwd: root })
        .sort()
        .map((file): Row => [file, C]),
    ],
  },
  Contributing: {
    'The code': [
      ['CONTRIBUTING.md', C],
      ['ARCHITECTURE.md', C],
      ['docs/how-it-works.md', C, O],
      ['docs/life-of-a-message.md', C, O],
      ['docs/map.md', C],
      ['docs/adding-an-operation.md', C],
      ['docs/dependencies.md', C, S],
    ],
    'Proofs and results': [
      ['bench/RESULTS.md', C, S],
      ['bench/README.md', C],
      ['proofs/README.md', C],
      ['CHANGELOG.md', S, P, O, C],
    ],
  },
}

const places: Record<string, string> = {
  'docs/index.md': 'index.md',
  'docs/decisions/README.md': 'decisions/index.md',
  'docs/security.md': 'security/index.md',
  'SECURITY.md': 'security/reporting.md',
  'CONTRIBUTING.md': 'contributing/index.md',
}

export const pages: Page[] = Object.entries(table).flatMap(([section, groups]) =>
  Object.entries(groups).flatMap(([group, rows]) =>
    rows.map(([file, ...readers]) => ({ file, path: pathOf(file, section), section, group, readers })),
  ),
)

/** Each section's pages are in its folders: a folder has one sidebar. */
function pathOf(file: string, section: string): string {
  const inFolder = /^docs\/(.+\/.+)$/.exec(file)?.[1]
  return (
    places[file] ??
    inFolder ??
    `${section.toLowerCase()}/${file
      .replace(/^docs\//, '')
      .replaceAll('/', '-')
      .toLowerCase()}`
  )
}
