import { Button, Group, Modal, Stack, Text, Textarea } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../../api/client.ts'
import { refetchAll } from '../../../api/queries.ts'
import { DateTimeField } from '../../../components/date-time-field.tsx'
import { Failure } from '../../../components/failure.tsx'
import { useToast } from '../../../components/toast.tsx'
import { secondOf } from '../../../components/zone.ts'

const narrow = '(max-width: 600px)'
const defaultDays = 30

/** Requests a signed file about the project. A worker makes it. */
export function EvidenceButton({ projectId }: { projectId: number }) {
  const [isOpen, setIsOpen] = useState(false)
  const isNarrow = useMediaQuery(narrow)
  const close = () => setIsOpen(false)
  return (
    <>
      <Button variant="default" onClick={() => setIsOpen(true)}>
        Request evidence
      </Button>
      <Modal
        opened={isOpen}
        onClose={close}
        closeOnClickOutside={false}
        closeButtonProps={{ 'aria-label': 'Close' }}
        title="Request evidence"
        size="lg"
        fullScreen={isNarrow ?? false}
      >
        <EvidenceForm projectId={projectId} close={close} />
      </Modal>
    </>
  )
}

function EvidenceForm({ projectId, close }: { projectId: number; close: () => void }) {
  const toast = useToast()
  const [from, setFrom] = useState(() => secondOf(Date.now() - defaultDays * 86_400_000))
  const [to, setTo] = useState(() => secondOf(Date.now()))
  const [messages, setMessages] = useState('')
  const request = useMutation({
    mutationFn: () =>
      call('evidence.create', {
        path: { project_id: projectId },
        body: { from, to, message_ids: [...new Set(messages.split(/[\s,;]+/).filter(Boolean))] },
      }),
    onSuccess: async () => {
      toast('Evidence requested')
      close()
      await refetchAll()
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        request.mutate()
      }}
    >
      <Stack>
        <Text size="sm" c="dimmed">
          A signed file for a recipient outside this service. It contains the audit entries and interventions
          in the range with their reasons, the daily figures, and the timelines of the messages below. Anyone
          can verify it with the public key. Your request is recorded.
        </Text>
        <Group grow align="flex-start" preventGrowOverflow={false}>
          <DateTimeField label="From" value={from} onChange={setFrom} required data-autofocus />
          <DateTimeField label="To" value={to} onChange={setTo} required />
        </Group>
        <Textarea
          label="Message ids"
          description="Optional, up to 100, one per line."
          value={messages}
          onChange={(event) => setMessages(event.currentTarget.value)}
          autosize
          minRows={2}
          maxRows={8}
          spellCheck={false}
        />
        <Failure of={request.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={request.isPending}>
            Request
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
