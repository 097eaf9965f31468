import { Button, SimpleGrid, Stack, Text } from '@mantine/core'
import type { Intervention, Project, ProjectQueue } from '../../../api/operations.gen.ts'
import { Can } from '../../../components/can.tsx'
import { counted, isCapped, upTo } from '../../../components/numbers.ts'
import { PartHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { strictestFirst } from '../../../resources/interventions/kinds.ts'
import { useAct } from '../../act/use-act.tsx'
import { startIntervention } from '../interventions/acts.tsx'
import { History } from '../interventions/history.tsx'
import { InForce, useInForce } from '../interventions/in-force.tsx'
import { useProject } from '../projects/project-page.tsx'
import { Queue, useQueue } from '../queue/queue.tsx'
import { Checks } from './checks.tsx'
import { Firings } from './firings.tsx'

/** Answers why a project's mail is slow or refused. */
export function SendingPage() {
  const query = useProject()
  return <QueryState query={query}>{({ data }) => <SendingOf key={data.id} project={data} />}</QueryState>
}

function SendingOf({ project }: { project: Project }) {
  const start = useAct()
  return (
    <>
      <PartHead title="Sending" below={<Summary project={project} />}>
        <Can change="interventions.create">
          <Button variant="default" onClick={() => start(startIntervention(project))}>
            Start an intervention
          </Button>
        </Can>
      </PartHead>
      <Stack gap="xl">
        <InForce projectId={project.id} />
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
          <Checks projectId={project.id} />
          <Queue project={project} />
        </SimpleGrid>
        <Firings projectId={project.id} />
        <History />
      </Stack>
    </>
  )
}

function Summary({ project }: { project: Project }) {
  const inForce = useInForce(project.id)
  const queue = useQueue(project.id)
  if (!inForce.data || !queue.data) return 'Why is mail slow or refused?'
  return <Text size="sm">{summaryOf(project, strictestFirst(inForce.data.data), queue.data)}</Text>
}

/** Subscriptions with these statuses stop a project's mail. */
const stopped = ['canceled', 'paused']

function summaryOf(project: Project, [strictest]: Intervention[], { waiting }: ProjectQueue): string {
  const status = project.admin_subscription_status ?? project.billing_subscription_status
  const waits = `Waiting: ${upTo(waiting)}.`
  if (strictest?.kind === 'lock') return `Mail is refused, because the project is locked. ${waits}`
  if (status !== null && stopped.includes(status))
    return `Mail is refused, because the subscription is ${status}. ${waits}`
  if (strictest?.kind === 'hold') return `Mail is accepted, but not sent, because it is held. ${waits}`
  if (strictest?.kind === 'pace') {
    const perHour = strictest.pace_per_hour ?? 1
    const wait = waiting > 0 ? ` At this pace, that takes ${durationOf(waiting / perHour, waiting)}.` : ''
    return `Mail is sent slowly: at most ${counted(perHour, 'recipient')} per hour. ${waits}${wait}`
  }
  return `No intervention restricts this project’s mail. ${waits}`
}

function durationOf(hours: number, waiting: number): string {
  const about = isCapped(waiting) ? 'more than' : 'about'
  if (hours < 1) return `${about} ${inUnit(hours * 60, 'minute')}`
  return `${about} ${hours < 48 ? inUnit(hours, 'hour') : inUnit(hours / 24, 'day')}`
}

/** "1 minute", "3 hours". */
const inUnit = (value: number, unit: 'minute' | 'hour' | 'day'): string =>
  new Intl.NumberFormat('en', { style: 'unit', unit, unitDisplay: 'long' }).format(Math.ceil(value))
