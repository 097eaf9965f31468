import { Button, Table, Text } from '@mantine/core'
import { useState } from 'react'
import type { ImportReport } from '../../api/operations.gen.ts'
import { Badge } from '../../components/badge.tsx'
import { counted, number } from '../../components/numbers.ts'
import type { Tone } from '../../components/tone.ts'
import classes from './import-report.module.css'

type Line = ImportReport['lines'][number]

const results: Record<Line['result'], { label: string; tone: Tone }> = {
  added: { label: 'added', tone: 'good' },
  already_suppressed: { label: 'already suppressed', tone: 'calm' },
  duplicate: { label: 'duplicate', tone: 'calm' },
  invalid: { label: 'invalid', tone: 'bad' },
}

const shownAtFirst = 50

/** The result for each line of an import. Invalid lines come first. */
export function ImportReportTable({ report }: { report: ImportReport }) {
  const [limit, setLimit] = useState(shownAtFirst)
  const lines = [
    ...report.lines.filter(({ result }) => result === 'invalid'),
    ...report.lines.filter(({ result }) => result !== 'invalid'),
  ]
  const hidden = lines.length - limit
  return (
    <div>
      <Text size="sm" mb="xs">
        {counted(report.lines.length, 'line')}: {number(report.added)} added,{' '}
        {number(report.already_suppressed)} already suppressed, {counted(report.duplicate, 'duplicate')},{' '}
        {number(report.invalid)} invalid.
      </Text>
      <Table aria-label="Lines of the import" className={classes.lines ?? ''}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Line</Table.Th>
            <Table.Th scope="col">Address</Table.Th>
            <Table.Th scope="col">Result</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {lines.slice(0, limit).map((line) => (
            <Row key={line.line} {...line} />
          ))}
        </Table.Tbody>
      </Table>
      {hidden > 0 && (
        <Button variant="default" size="compact-sm" mt="xs" onClick={() => setLimit(limit + 500)}>
          Show more ({number(hidden)})
        </Button>
      )}
    </div>
  )
}

function Row({ line, address, result, message }: Line) {
  const { label, tone } = results[result]
  return (
    <Table.Tr>
      <Table.Td className={classes.number ?? ''}>{line}</Table.Td>
      <Table.Td className={classes.address ?? ''}>
        {address}
        {message && (
          <Text size="sm" c="dimmed">
            {message}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Badge tone={tone}>{label}</Badge>
      </Table.Td>
    </Table.Tr>
  )
}
