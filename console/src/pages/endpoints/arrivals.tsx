import { Button, Group, Loader, Text } from '@mantine/core'
import { number } from '../../components/figures.tsx'
import { exactly } from '../../components/when.tsx'
import classes from './endpoints.module.css'
import type { ArrivalsOf, Order } from './use-arrivals.ts'

/** Says what has become of the last test or replay. */
export function Arrivals({ of: { order, attempts, isLooking, lookOn, forget } }: { of: ArrivalsOf }) {
  if (!order) return null
  const taken = attempts.filter(({ outcome }) => outcome === 'delivered').length
  const refused = attempts.length - taken
  const sofar =
    attempts.length === 0
      ? isLooking
        ? 'No attempt yet.'
        : 'No attempt within half a minute.'
      : `${number(attempts.length)} ${attempts.length === 1 ? 'attempt' : 'attempts'} since: ${number(taken)} delivered${refused > 0 ? `, ${number(refused)} not` : ''}.`
  return (
    <section className={classes.arrivals} aria-label="Progress">
      <Group gap="sm" role="status">
        {isLooking && <Loader size="xs" aria-hidden="true" />}
        <Text size="sm">
          {nameOf(order)} {sofar}
        </Text>
      </Group>
      <Group gap="xs">
        {!isLooking && (
          <Button size="compact-sm" variant="default" onClick={lookOn}>
            Look again
          </Button>
        )}
        <Button size="compact-sm" variant="default" onClick={forget}>
          Dismiss
        </Button>
      </Group>
    </section>
  )
}

function nameOf(order: Order): string {
  if ('test' in order) return 'A test event was asked for.'
  if ('event_id' in order) return 'One event was asked for once more.'
  return `Events from ${exactly(order.from)} to ${exactly(order.to)} were asked for once more.`
}
