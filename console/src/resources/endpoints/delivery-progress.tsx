import { Button, Group, Loader, Text } from '@mantine/core'
import { counted, number } from '../../components/numbers.ts'
import { useZone } from '../../components/use-zone.tsx'
import { exactTime, type Zone } from '../../components/zone.ts'
import classes from './endpoints.module.css'
import type { DeliveryProgressState, DeliveryRequest } from './use-delivery-progress.ts'

/** The progress of the last test or replay. */
export function DeliveryProgress({
  of: { request, attempts, isPolling, resume, dismiss },
}: {
  of: DeliveryProgressState
}) {
  const zone = useZone()
  if (!request) return null
  const delivered = attempts.filter(({ outcome }) => outcome === 'delivered').length
  const failed = attempts.length - delivered
  const summary =
    attempts.length === 0
      ? isPolling
        ? 'No attempts yet.'
        : 'No attempts within 30 seconds.'
      : `${counted(attempts.length, 'attempt')}: ${number(delivered)} delivered${failed > 0 ? `, ${number(failed)} failed` : ''}.`
  return (
    <section className={classes.progress} aria-label="Progress">
      <Group gap="sm" role="status">
        {isPolling && <Loader size="xs" aria-hidden="true" />}
        <Text size="sm">
          {nameOf(request, zone)} {summary}
        </Text>
      </Group>
      <Group gap="xs">
        {!isPolling && (
          <Button size="compact-sm" variant="default" onClick={resume}>
            Keep checking
          </Button>
        )}
        <Button size="compact-sm" variant="default" onClick={dismiss}>
          Dismiss
        </Button>
      </Group>
    </section>
  )
}

function nameOf(request: DeliveryRequest, zone: Zone): string {
  if ('test' in request) return 'Test event sent.'
  if ('event_id' in request) return 'Replay of one event started.'
  return `Replay of events from ${exactTime(request.from, zone)} to ${exactTime(request.to, zone)} started.`
}
