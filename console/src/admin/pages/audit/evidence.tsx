import { Button, Group, Progress, Text, Title } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { call, send } from '../../../api/client.ts'
import type { Evidence } from '../../../api/operations.gen.ts'
import { Badge } from '../../../components/badge.tsx'
import { counted } from '../../../components/numbers.ts'
import { ExactTime, RelativeTime } from '../../../components/relative-time.tsx'
import { saveAs } from '../../../components/save-as.ts'
import { useToast } from '../../../components/toast.tsx'
import type { Tone } from '../../../components/tone.ts'
import { useZone } from '../../../components/use-zone.tsx'
import { minuteOf, type Zone, zoneName } from '../../../components/zone.ts'
import classes from './verification.module.css'

const pollMs = 1000
const shown = 5

const isFinished = ({ status }: Evidence): boolean => status === 'ready' || status === 'failed'

/** The last requested files of a project. */
export function EvidenceList({ projectId }: { projectId: number }) {
  const path = { project_id: projectId }
  const { data } = useQuery({
    queryKey: ['evidence.list', path],
    queryFn: ({ signal }) => call('evidence.list', { path, query: { limit: shown }, signal }),
    refetchInterval: ({ state }) => (state.data?.data.every(isFinished) === false ? pollMs : false),
  })
  const files = data?.data ?? []
  if (files.length === 0) return null
  return (
    <section className={classes.verification} aria-labelledby="evidence">
      <Title order={3} size="h5" id="evidence">
        Evidence
      </Title>
      {files.map((file) => (
        <EvidenceFile key={file.id} file={file} />
      ))}
    </section>
  )
}

const states: Record<Evidence['status'], { label: string; tone: Tone }> = {
  queued: { label: 'queued', tone: 'calm' },
  building: { label: 'in progress', tone: 'calm' },
  signing: { label: 'waiting for the signature', tone: 'calm' },
  ready: { label: 'ready', tone: 'good' },
  failed: { label: 'failed', tone: 'bad' },
}

function EvidenceFile({ file }: { file: Evidence }) {
  const toast = useToast()
  const name = `postern-evidence-${file.id}-project-${file.project_id}.ndjson`
  const download = useMutation({
    mutationFn: () => downloaded(file),
    onSuccess: (blob) => {
      saveAs(blob, name)
      toast(`Saved ${name}`)
    },
  })
  const zone = useZone()
  const { label, tone } = states[file.status]
  return (
    <div style={{ paddingTop: 10 }}>
      <Group justify="space-between" gap="xs" wrap="nowrap" align="flex-start">
        <div>
          <Group gap="xs" role="status">
            <Badge tone={tone}>{label}</Badge>
            <Text size="sm">{extentOf(file, zone)}</Text>
          </Group>
          <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            Requested by {file.requested_by.email ?? `user ${file.requested_by.id}`}{' '}
            <RelativeTime at={file.created_at} />. Kept until <ExactTime at={file.expires_at} />.
          </Text>
        </div>
        {file.status === 'ready' && (
          <Button
            size="compact-sm"
            variant="default"
            style={{ flexShrink: 0 }}
            loading={download.isPending}
            aria-label={`Download evidence ${file.id}`}
            onClick={() => download.mutate()}
          >
            Download
          </Button>
        )}
      </Group>
      {!isFinished(file) && <Progress value={file.progress} mt={6} size="sm" aria-label="Evidence" />}
      {file.problem !== null && <Text size="sm">{file.problem}</Text>}
      {download.error && (
        <Text size="sm" c="var(--postern-bad)" role="alert">
          {download.error.message}
        </Text>
      )}
    </div>
  )
}

const extentOf = ({ from, to, message_ids, lines, status }: Evidence, zone: Zone): string =>
  [
    `${minuteOf(from, zone)} to ${minuteOf(to, zone)} ${zoneName(to, zone)}`,
    ...(message_ids.length === 0 ? [] : [counted(message_ids.length, 'message')]),
    ...(status === 'ready' ? [counted(lines, 'line')] : []),
  ].join(', ')

/** Every byte is signed, so an incomplete file is not saved. */
async function downloaded({ project_id, id, size_bytes }: Evidence): Promise<Blob> {
  const response = await send('evidence.download', { path: { project_id, id } })
  const blob = await response.blob()
  if (blob.size !== size_bytes) throw new Error('The download is incomplete. Nothing was saved. Try again.')
  return blob
}
