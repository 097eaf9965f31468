import { Table, Text } from '@mantine/core'
import type { Reputation } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { counted, number } from '../../../components/numbers.ts'
import { QueryState } from '../../../components/states.tsx'
import classes from './score-parts.module.css'

const labels: Record<Reputation['parts'][number]['kind'], string> = {
  bounced: 'Bounced',
  complained: 'Complained',
  failed: 'Failed',
}

const rates: typeof labels = {
  bounced: 'bounce rate',
  complained: 'complaint rate',
  failed: 'failure rate',
}

const share = (rate: number): string => `${(rate * 100).toLocaleString('en', { maximumFractionDigits: 2 })} %`
const points = (value: number): string =>
  value === 0 ? '0' : `−${value.toLocaleString('en', { maximumFractionDigits: 1 })}`

/** How the score is computed from the last seven days. */
export function ScoreParts({ projectId }: { projectId: number }) {
  const query = useAnswer('reputation.show', { path: { project_id: projectId } })
  return (
    <section className={classes.parts} id="score-parts" aria-label="How the score is computed">
      <QueryState query={query}>{(reputation) => <Parts reputation={reputation} />}</QueryState>
    </section>
  )
}

function Parts({ reputation }: { reputation: Reputation }) {
  const { volume, min_volume, parts, computed_score, score_offset, reputation_score } = reputation
  const raised = parts.filter((part) => part.volume > volume)
  return (
    <>
      <Text size="sm" mb="xs">
        The score starts at 100 and loses points for the results of the last 7 days (
        {counted(volume, 'message')}).
        {volume < min_volume && ` With fewer than ${min_volume} messages, no points are deducted.`}
      </Text>
      <Table.ScrollContainer minWidth={0}>
        <Table aria-label="Parts of the score" verticalSpacing={4} className={classes.table ?? ''}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Result</Table.Th>
              <Table.Th scope="col">Count</Table.Th>
              <Table.Th scope="col">Rate</Table.Th>
              <Table.Th scope="col" className={classes.extra ?? ''}>
                Tolerated
              </Table.Th>
              <Table.Th scope="col" className={classes.extra ?? ''}>
                Maximum
              </Table.Th>
              <Table.Th scope="col">Points</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {parts.map((part) => (
              <Table.Tr key={part.kind}>
                <Table.Th scope="row">{labels[part.kind]}</Table.Th>
                <Table.Td>{number(part.count)}</Table.Td>
                <Table.Td>{share(part.rate)}</Table.Td>
                <Table.Td className={classes.extra ?? ''}>{share(part.tolerated_rate)}</Table.Td>
                <Table.Td className={classes.extra ?? ''}>
                  {points(part.max_points)} at {share(part.worst_rate)}
                </Table.Td>
                <Table.Td>{points(part.points)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {raised.length > 0 && (
        <Text size="sm" mt="xs">
          {raised
            .map(
              (part) =>
                `The ${rates[part.kind]} is computed over at least ${counted(part.volume, 'message')}.`,
            )
            .join(' ')}
        </Text>
      )}
      <Text size="sm" mt="xs">
        Computed score: {computed_score}
        {score_offset !== 0 &&
          `. Offset set by an administrator: ${score_offset > 0 ? '+' : '−'}${Math.abs(score_offset)}`}
        . Score: <strong>{reputation_score}</strong>
      </Text>
    </>
  )
}
