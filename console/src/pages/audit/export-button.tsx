import { Button, Group, Text } from '@mantine/core'
import { number } from '../../components/figures.tsx'
import { useTell } from '../../components/told.tsx'
import { type Progress, useExport } from './export.ts'

/** Saves the audit of a project, or all of it, as a file that `postern audit verify --file` checks anywhere. */
export function ExportButton({ projectId }: { projectId?: number }) {
  const tell = useTell()
  const fileName = `postern-audit-${projectId === undefined ? 'all' : `project-${projectId}`}-${new Date().toISOString().slice(0, 10)}.ndjson`
  const { shown, start, stop } = useExport(projectId, (file) => {
    saveAs(file, fileName)
    tell(`Saved: ${fileName}`)
  })
  return (
    <Group gap="sm">
      <Text size="sm" c="dimmed" role="status">
        {shown.state === 'running' && `Exporting: ${soFar(shown.progress)}`}
        {shown.state === 'done' && `Exported: ${soFar(shown.progress)}`}
      </Text>
      {shown.state === 'failed' && (
        <Text size="sm" c="var(--postern-bad)" role="alert">
          {shown.message}
        </Text>
      )}
      {shown.state === 'running' ? (
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

const soFar = ({ rows, bytes }: Progress): string =>
  `${number(rows)} rows, ${(bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1, minimumFractionDigits: 1 })} MB`

function saveAs(file: Blob, name: string): void {
  const address = URL.createObjectURL(file)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // The browser has begun to save by then, and the memory is not to be kept until the window closes.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
