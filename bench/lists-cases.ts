import { actors, busyProject, freePlan, legacyPlan } from './lists-fill.ts'

/** All combinations of filter values and sort orders of the lists. */
export interface Case {
  /** Cases in the same group are reported together. */
  group: string
  path: string
}

type Values = Record<string, (string | null)[]>

/** Null omits the parameter. */
function combinations(values: Values): Record<string, string>[] {
  let all: Record<string, string>[] = [{}]
  for (const [name, choices] of Object.entries(values)) {
    all = all.flatMap((query) =>
      choices.map((value) => (value === null ? query : { ...query, [name]: value })),
    )
  }
  return all
}

// Ordered by how many names contain the text: all, one in thirteen, one in a thousand, a few, none (although each
// trigram is common), none. They are followed by texts for which a trigram index does not help.
const parts = [
  null,
  'project',
  'globex',
  'quixotic',
  'ab12',
  'project globex',
  'xyzzyx',
  'a',
  'qj',
  '€',
  '---',
]

const ranges = [{}, { min_score: '95' }, { max_score: '20' }, { min_score: '40', max_score: '45' }]

export function projectCases(): Case[] {
  const orders = ['-id', 'id', 'name', '-name', 'reputation_score', '-reputation_score']
  const filters = combinations({
    q: parts,
    locked: [null, 'true', 'false'],
    plan_id: [null, String(freePlan), String(legacyPlan), '999'],
    over_limit: [null, 'true', 'false'],
  })
  return orders.flatMap((sort) =>
    filters.flatMap((filter) =>
      ranges.map((range) => ({
        group: `projects, sort ${sort}`,
        path: `/projects?${new URLSearchParams({ ...filter, ...range, sort })}`,
      })),
    ),
  )
}

export const userCases = (): Case[] =>
  combinations({
    q: [null, 'example', 'globex.example', 'ada', 'person777', 'example globex', 'xyzzyx', 'a', 'qj', '€'],
    role: [null, 'user', 'admin'],
    is_active: [null, 'true', 'false'],
  }).map((query) => ({ group: 'users', path: `/users?${new URLSearchParams(query)}` }))

/** Each keystroke of a search; then common, rare and absent terms, and terms without letters. */
export function searchCases(): Case[] {
  const typed = [
    'Imported Quixotic',
    'support@mail1-777777.example',
    'mail2-4242.example',
    'person777@',
    '123456',
  ]
  const keystrokes = typed.flatMap((text) => [...text].map((_, index) => text.slice(0, index + 1).trim()))
  const others = [
    ...parts.filter((part) => part !== null),
    'e',
    '.e',
    '.example',
    'xample',
    'ail1-7777',
    'ada',
    '€€€',
  ]
  return [...new Set([...keystrokes, ...others])].map((q) => ({
    group: 'search',
    path: `/search?${new URLSearchParams({ q })}`,
  }))
}

/**
 * `lastAt` is the time of the newest row; `spanSeconds` is the number of seconds between the oldest and the newest row.
 */
export function auditCases(lastAt: Date, spanSeconds: number): Case[] {
  const back = (share: number): string =>
    new Date(lastAt.getTime() - share * spanSeconds * 1000).toISOString()
  const times = [
    {},
    { from: back(0.001) },
    { to: back(0.9) },
    { from: back(0.5), to: back(0.499) },
    { from: back(-1) },
  ]
  return combinations({
    project_id: [null, '0', String(busyProject), '77', '999999999'],
    actor: [null, String(actors[0]), String(actors.at(-1)), '999999999'],
    operation: [null, 'projects.edit', 'projects.set-billing', 'plans.edit', 'domains.rotate'],
    resource: [null, 'project', 'endpoint', 'project:77', 'message'],
  }).flatMap((filter) =>
    times.map((time) => ({ group: 'audit', path: `/audit?${new URLSearchParams({ ...filter, ...time })}` })),
  )
}
