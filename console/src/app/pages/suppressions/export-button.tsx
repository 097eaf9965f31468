import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { call } from '../../../api/client.ts'
import { saveAs } from '../../../components/save-as.ts'
import { useToast } from '../../../components/toast.tsx'

/** Saves all suppressed addresses as a CSV file, which an import accepts. */
export function ExportButton({ projectId }: { projectId: number }) {
  const toast = useToast()
  const exporting = useMutation({
    mutationFn: () => readAll(projectId),
    onSuccess: (parts) => saveAs(new Blob(parts, { type: 'text/csv' }), `suppressions-${projectId}.csv`),
    onError: ({ message }) => toast(message),
  })
  return (
    <Button variant="default" loading={exporting.isPending} onClick={() => exporting.mutate()}>
      Export
    </Button>
  )
}

async function readAll(projectId: number): Promise<string[]> {
  const parts: string[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const part = await call('customer.suppressions.export', {
      path: { project_id: projectId },
      query: { ...(cursor && { cursor }) },
    })
    parts.push(part.csv)
    cursor = part.next_cursor
  }
  return parts
}
