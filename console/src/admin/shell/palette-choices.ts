import { useDebouncedValue } from '@mantine/hooks'
import { useNavigate, useParams } from '@tanstack/react-router'
import type { SearchResult } from '../../api/operations.gen.ts'
import { useAnswer, useOne } from '../../api/queries.ts'
import { useCan } from '../../components/can.tsx'
import type { Section } from '../../frame/navigation.tsx'
import { type Choice, command } from '../../frame/palette-choice.ts'
import { useFrameCommands } from '../../frame/use-frame-commands.ts'
import { useAct } from '../act/use-act.tsx'
import { createProject, lockProject } from '../pages/projects/acts.tsx'
import { tabs } from '../pages/projects/tabs.ts'
import { sections } from './sections.ts'

/** Longer than the pause between two keystrokes, short enough to feel immediate. */
const debounceMs = 60

/** Choices for the typed text: commands immediately, search results from the server a moment later. */
export function useChoices(typed: string) {
  const q = typed.trim().toLowerCase()
  const [searched] = useDebouncedValue(q, debounceMs)
  const query = useAnswer('search.find', { query: { q: searched } }, { isEnabled: searched !== '' })
  const commands = useCommands()
  const go = useGo()
  const trace = useTrace()

  const isCurrent = searched === q && !query.isPlaceholderData
  const found = q === '' ? [] : (query.data?.data ?? [])
  // Until new results arrive, the previous results that still match are shown.
  const matching = isCurrent ? found : found.filter(({ label }) => label.toLowerCase().includes(q))
  const words = q.split(/\s+/)
  return {
    choices: [
      ...commands.filter(({ label }) => words.every((word) => label.toLowerCase().includes(word))),
      ...matching.map((result) => choiceOf(result, go)),
      ...traceChoices(typed.trim(), go, trace),
    ],
    isSearching: q !== '' && !query.error && (!isCurrent || query.isLoading),
    failure: searched === '' ? undefined : query.error?.message,
  }
}

type Go = (path: string, search?: Record<string, string>) => void

/** Paths are built at run time, so the router cannot check their type. */
function useGo(): Go {
  const navigate = useNavigate()
  return (path, search = {}) => void navigate({ to: path, search: search as never })
}

/** Opens the trace page with the result for a text. */
export function useTrace(): (text: string) => void {
  const navigate = useNavigate()
  return (traceText) => void navigate({ to: '/trace', state: { traceText } })
}

const fullAddress = /^[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+$/
/** A Message-ID, a return path, a header field or an id of an MTA's queue. */
const reference =
  /^<.+@.+>$|bounce-[a-z2-7]{48}|[0-9a-f]{8}-[0-9a-f]{4}-7|^[a-z-]+: \S|^(?=.*\d)(?=.*[a-z])[\w.-]{8,64}$/i

/** What is looked up in the mail of all projects, offered for text that looks like a reference. */
function traceChoices(typed: string, go: Go, trace: (text: string) => void): Choice[] {
  const isAddress = fullAddress.test(typed)
  if (!isAddress && !reference.test(typed)) return []
  const group = 'Messages of all projects'
  return [
    command('trace-typed', group, `Trace ${typed}`, () => trace(typed)),
    ...(isAddress
      ? [command('sent-to', group, `Messages to ${typed}`, () => go('/messages', { recipient: typed }))]
      : []),
  ]
}

const allSections: Section[] = sections.flatMap((group) => [...group.sections])

const groups = { project: 'Projects', domain: 'Domains', route: 'Addresses', user: 'Users' }

function choiceOf({ type, id, project_id, project_name, label }: SearchResult, go: Go): Choice {
  const email = /<([^<>]+)>$/.exec(label)?.[1] ?? label
  const targets = {
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
    select: targets[type],
  }
}

function useCommands(): Choice[] {
  const go = useGo()
  const start = useAct()
  const can = useCan()
  const settings = useFrameCommands()
  const newProject = () => start(createProject(({ id }) => go(`/projects/${id}`)))
  return [
    ...useProjectCommands(go),
    ...allSections.map((section) =>
      command(`section-${section.to}`, 'Go to', section.command ?? section.label, () => go(section.to)),
    ),
    ...(can('projects.create') ? [command('new-project', 'Commands', 'New project', newProject)] : []),
    ...settings,
  ]
}

/** On a project's page: its tabs, and locking or unlocking it. */
function useProjectCommands(go: Go): Choice[] {
  const start = useAct()
  const can = useCan()
  const { projectId } = useParams({ strict: false })
  const project = useOne(
    'projects.show',
    { project_id: Number(projectId ?? 0) },
    { isEnabled: projectId !== undefined },
  )
  if (projectId === undefined || !project.data) return []
  const loaded = project.data
  const { name, is_locked } = loaded.data
  const group = `In ${name}`
  const home = `/projects/${projectId}`
  const lock = command('lock', group, is_locked ? 'Unlock this project' : 'Lock this project', () =>
    start(lockProject(loaded)),
  )
  return [
    ...tabs.map(([tab, label]) =>
      command(`tab-${tab}`, group, label, () => go(tab === 'overview' ? home : `${home}/${tab}`)),
    ),
    ...(can('projects.edit', 'is_locked') ? [lock] : []),
  ]
}
