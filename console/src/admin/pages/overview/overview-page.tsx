import { SimpleGrid, Stack } from '@mantine/core'
import { useEffect, useState } from 'react'
import type { Overview } from '../../../api/operations.gen.ts'
import { useAnswer } from '../../../api/queries.ts'
import { age } from '../../../components/numbers.ts'
import { PageHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { hoursOf, MailCharts } from '../../../resources/usage/mail-charts.tsx'
import { MailboxProviders } from '../../../resources/usage/mailbox-providers.tsx'
import { Attention } from './attention.tsx'
import { Failures } from './failures.tsx'
import { LastChanges } from './last-changes.tsx'
import { MailTiles } from './mail-tiles.tsx'
import { Processes } from './processes.tsx'
import { System } from './system.tsx'

const pollMs = 10_000

/** The home page of the console. */
export function OverviewPage() {
  const query = useAnswer('overview.show', {}, { pollMs })
  return (
    <>
      <PageHead title="Overview" below={query.data && <Updated at={query.dataUpdatedAt} />} />
      <QueryState query={query} rows={12}>
        {(overview) => <OverviewOf overview={overview} />}
      </QueryState>
    </>
  )
}

function OverviewOf({ overview }: { overview: Overview }) {
  return (
    <>
      <Failures overview={overview} />
      <Stack gap="xl">
        <Stack gap="sm">
          <MailTiles overview={overview} />
          <MailCharts unit="Hour" periods={hoursOf(overview.mail.hours)} />
        </Stack>
        <Attention attention={overview.attention} />
        <MailboxProviders figures={overview.mail.mailbox_providers} range="last 24 hours" />
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
          <Processes processes={overview.processes} />
          <System overview={overview} />
        </SimpleGrid>
        <LastChanges acts={overview.acts} />
      </Stack>
    </>
  )
}

/** How old the data is, by the browser's clock. */
function Updated({ at }: { at: number }) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  return <>Updated {age((now - at) / 1000)} ago</>
}
