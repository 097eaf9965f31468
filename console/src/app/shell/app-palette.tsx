import { useNavigate, useParams } from '@tanstack/react-router'
import { useAnswer } from '../../api/queries.ts'
import type { PaletteProps } from '../../frame/palette.tsx'
import { type Choice, command } from '../../frame/palette-choice.ts'
import { PaletteDialog } from '../../frame/palette-dialog.tsx'
import { useFrameCommands } from '../../frame/use-frame-commands.ts'
import { sectionsOf } from './sections.ts'

/** Pages, projects and commands. */
export default function AppPalette(props: PaletteProps) {
  const words = props.typed.trim().toLowerCase().split(/\s+/)
  const choices = useCommands().filter(({ label }) =>
    words.every((word) => label.toLowerCase().includes(word)),
  )
  return <PaletteDialog {...props} choices={choices} placeholder="Search pages, projects and commands" />
}

function useCommands(): Choice[] {
  const navigate = useNavigate()
  const { projectId } = useParams({ strict: false })
  const projects = useAnswer('customer.projects.list', { query: { limit: 100 } })
  const sections = sectionsOf(projectId).flatMap((group) => [...group.sections])
  return [
    ...sections.map(({ to, label }) => command(`section-${to}`, 'Go to', label, () => void navigate({ to }))),
    ...(projects.data?.data ?? []).map(({ id, name }) => ({
      ...command(`project-${id}`, 'Projects', name, () => {
        void navigate({ to: '/projects/$projectId', params: { projectId: String(id) } })
      }),
      note: `project ${id}`,
    })),
    ...useFrameCommands(),
  ]
}
