import type { Overview } from '../../api/operations.gen.ts'
import { counted } from '../../components/numbers.ts'
import type { SectionCount, SectionCounts, SectionGroup } from '../../frame/navigation.tsx'
import { countFailures } from '../pages/overview/failures.tsx'

/** The sections of the administrators' console. */
export const sections = [
  {
    sections: [
      { to: '/', label: 'Overview', icon: 'overview', key: 'o' },
      { to: '/projects', label: 'Projects', icon: 'project', key: 'p' },
    ],
  },
  {
    label: 'Mail',
    sections: [
      { to: '/messages', label: 'Messages', icon: 'mail', key: 'm', command: 'Messages of all projects' },
      { to: '/trace', label: 'Trace', icon: 'trace', key: 't', command: 'Trace a report' },
      { to: '/suppressions', label: 'Suppressions', icon: 'suppression', key: 's' },
    ],
  },
  {
    label: 'Oversight',
    sections: [
      { to: '/policies', label: 'Policies', icon: 'policy', key: 'y' },
      { to: '/bulk', label: 'Bulk actions', icon: 'bulk', key: 'b' },
      { to: '/audit', label: 'Audit', icon: 'audit', key: 'a' },
    ],
  },
  {
    label: 'Administration',
    sections: [
      { to: '/plans', label: 'Plans', icon: 'plan', key: 'l' },
      { to: '/users', label: 'Users', icon: 'user', key: 'u' },
    ],
  },
] as const satisfies readonly SectionGroup[]

/**
 * What happened and waits for an administrator. Interventions in force and projects over their plan are not counted:
 * somebody decided these, and they can last.
 */
export function sectionCounts(overview: Overview): SectionCounts {
  return { '/': attentionOf(overview), '/policies': trippedOf(overview) }
}

function attentionOf(overview: Overview): SectionCount {
  const { appeal, domain_failing, firing } = overview.attention.counts
  const failures = countFailures(overview)
  const parts: Parameters<typeof counted>[] = [
    [failures, 'failure'],
    [appeal, 'open appeal'],
    [domain_failing, 'project with a failing domain', 'projects with a failing domain'],
    [firing, 'project for which a policy fired', 'projects for which a policy fired'],
  ]
  return {
    count: failures + appeal + domain_failing + firing,
    tone: failures + appeal > 0 ? 'bad' : 'warn',
    text: parts
      .filter(([count]) => count > 0)
      .map((part) => counted(...part))
      .join(', '),
  }
}

function trippedOf({ policies_tripped: { length } }: Overview): SectionCount {
  return {
    count: length,
    tone: 'bad',
    text: `${counted(length, 'policy', 'policies')} stopped by the breaker`,
  }
}
