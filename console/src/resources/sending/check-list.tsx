import { Group, Text } from '@mantine/core'
import type { ExplanationForCustomers } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'
import { Sentence } from '../../components/sentence.tsx'
import type { Tone } from '../../components/tone.ts'
import classes from './check-list.module.css'

type Check = ExplanationForCustomers['checks'][number]

const labels: Record<Check['name'], string> = {
  project_lock: 'Project lock',
  subscription: 'Subscription',
  sender_domain: 'Sender domain',
  provider: 'Provider',
  message: 'Addresses',
  suppression: 'Suppressed addresses',
  quota: 'Quota',
}

const tones: Record<Check['result'], Tone> = { passed: 'good', failed: 'bad', unknown: 'calm' }

const outcomes: Record<ExplanationForCustomers['outcome'], string> = {
  accepted: 'This message would be accepted.',
  suppressed: 'This message would be accepted, but not sent to this recipient.',
  refused: 'This message would be refused.',
}

/** Whether a message would be accepted now, and every check that it would have to pass. */
export function CheckList({
  explanation: { outcome, checks },
}: {
  explanation: Pick<ExplanationForCustomers, 'outcome' | 'checks'>
}) {
  return (
    <>
      <Text size="sm" fw={600} mb="xs" role="status">
        {outcomes[outcome]}
      </Text>
      <ul className={classes.checks} aria-label="Checks">
        {checks.map(({ name, result, message }) => (
          <li key={name}>
            <Group justify="space-between" wrap="nowrap">
              <strong>{labels[name]}</strong>
              <Badge tone={tones[result]}>{result}</Badge>
            </Group>
            <Sentence text={message} />
          </li>
        ))}
      </ul>
    </>
  )
}
