import { useMantineColorScheme } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useNavigate, useParams } from '@tanstack/react-router'
import type { SearchResult } from '../api/operations.gen.ts'
import { useAnswer, useOne } from '../api/queries.ts'
import { signOut } from '../api/session.ts'
import { useAct } from '../components/act/acts.tsx'
import { useTell } from '../components/told.tsx'
import { createProject, lockProject } from '../pages/projects/acts.tsx'
import { tabs } from '../pages/projects/tabs.ts'

/** Something to jump to, or to do. */
export interface Choice {
  key: string
  group: string
  label: string
  /** What tells it from others of the same name. */
  note?: string
  take: () => void
}

/** A person types faster than this between two letters of one word, and waits for no more. */
const restMs = 60

/** What fits what was typed: commands at once, and what the server finds a moment later. */
export function useChoices(typed: string) {
  const q = typed.trim().toLowerCase()
  const [asked] = useDebouncedValue(q, restMs)
  const query = useAnswer('search.find', { query: { q: asked } }, { isWanted: asked !== '' })
  const commands = useCommands()
  const go = useGo()

  const isAnswered = asked === q && !query.isPlaceholderData
  const found = q === '' ? [] : (query.data?.data ?? [])
  // Until its own answer is there, a question shows of the last one what would be right for it, too.
  const fitting = isAnswered ? found : found.filter(({ label }) => label.toLowerCase().includes(q))
  const words = q.split(/\s+/)
  return {
    choices: [
      ...commands.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word))),
      ...fitting.map((result) => choiceOf(result, go)),
    ],
    isAsking: q !== '' && !query.error && (!isAnswered || query.isLoading),
    failure: asked === '' ? undefined : query.error?.message,
  }
}

type Go = (path: string, search?: Record<string, string>) => void

/** Paths are put together here, so the router cannot know them by their type. */
function useGo(): Go {
  const navigate = useNavigate()
  return (path, search = {}) => void navigate({ to: path, search: search as never })
}

const groups = { project: 'Projects', domain: 'Domains', route: 'Addresses', user: 'People' }

function choiceOf({ type, id, project_id, project_name, label }: SearchResult, go: Go): Choice {
  const email = /<([^<>]+)>$/.exec(label)?.[1] ?? label
  const jumps = {
    project: () => go(`/projects/${id}`),
    domain: () => go(`/projects/${project_id}/domains/${id}`),
    route: () => go(`/projects/${project_id}/routing`, { address: label }),
    user: () => go('/users', { q: email }),
  }
  const note = type === 'project' ? `project ${id}` : project_name
  return {
    key: `${type}-${id}`,
    group: groups[type],
    label,
    ...(note !== null && { note }),
    take: jumps[type],
  }
}

const command = (key: string, group: string, label: string, take: () => void): Choice => ({
  key,
  group,
  label,
  take,
})

function useCommands(): Choice[] {
  const go = useGo()
  const start = useAct()
  const tell = useTell()
  const { setColorScheme } = useMantineColorScheme()
  const newProject = () => start(createProject(({ id }) => go(`/projects/${id}`)))
  return [
    ...useProjectCommands(go),
    command('projects', 'Go to', 'Projects', () => go('/projects')),
    command('audit', 'Go to', 'Audit', () => go('/audit')),
    command('plans', 'Go to', 'Plans', () => go('/plans')),
    command('users', 'Go to', 'Users', () => go('/users')),
    command('new-project', 'Do', 'New project', newProject),
    command('light', 'Do', 'Light', () => setColorScheme('light')),
    command('dark', 'Do', 'Dark', () => setColorScheme('dark')),
    command('auto', 'Do', 'Light or dark as the system', () => setColorScheme('auto')),
    command('sign-out', 'Do', 'Sign out', () => void signOut().catch(({ message }: Error) => tell(message))),
  ]
}

/** On a project's page: its parts, and its lock. */
function useProjectCommands(go: Go): Choice[] {
  const start = useAct()
  const { projectId } = useParams({ strict: false })
  const project = useOne(
    'projects.show',
    { project_id: Number(projectId ?? 0) },
    { isWanted: projectId !== undefined },
  )
  if (projectId === undefined || !project.data) return []
  const seen = project.data
  const { name, is_locked } = seen.data
  const group = `In ${name}`
  const home = `/projects/${projectId}`
  return [
    ...tabs.map(([tab, label]) =>
      command(`tab-${tab}`, group, label, () => go(tab === 'overview' ? home : `${home}/${tab}`)),
    ),
    command('lock', group, is_locked ? 'Unlock this project' : 'Lock this project', () =>
      start(lockProject(seen)),
    ),
  ]
}
