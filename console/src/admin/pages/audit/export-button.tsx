import { Button, Group, Text } from '@mantine/core'
import { counted } from '../../../components/numbers.ts'
import { saveAs } from '../../../components/save-as.ts'
import { useToast } from '../../../components/toast.tsx'
import { type Progress, useExport } from './export.ts'

/**
 * Saves one project's audit log, or the whole audit log, as a file that `postern audit verify --file` checks
 * offline.
 */
export function ExportButton({ projectId }: { projectId?: number }) {
  const toast = useToast()
  const fileName = `postern-audit-${projectId === undefined ? 'all' : `project-${projectId}`}-${new Date().toISOString().slice(0, 10)}.ndjson`
  const { state, start, stop } = useExport(projectId, (file) => {
    saveAs(file, fileName)
    toast(`Saved ${fileName}`)
  })
  return (
    <Group gap="sm">
      <Text size="sm" c="dimmed" role="status">
        {state.state === 'running' && `Exporting: ${sizeOf(state.progress)}`}
        {state.state === 'done' && `Exported: ${sizeOf(state.progress)}`}
      </Text>
      {state.state === 'failed' && (
        <Text size="sm" c="var(--postern-bad)" role="alert">
          {state.message}
        </Text>
      )}
      {state.state === 'running' ? (
        <Button variant="default" onClick={stop}>
          Stop
        </Button>
      ) : (
        <Button variant="default" onClick={start}>
          Export
        </Button>
      )}
    </Group>
  )
}

const sizeOf = ({ rows, bytes }: Progress): string =>
  `${counted(rows, 'entry', 'entries')}, ${(bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1, minimumFractionDigits: 1 })} MB`
