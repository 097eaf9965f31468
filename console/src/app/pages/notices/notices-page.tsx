import { Text } from '@mantine/core'
import { useState } from 'react'
import { usePage } from '../../../api/queries.ts'
import { Badge } from '../../../components/badge.tsx'
import { List } from '../../../components/list.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { ExactTime } from '../../../components/relative-time.tsx'
import { RowMenu } from '../../../components/row-menu.tsx'
import { Empty } from '../../../components/states.tsx'
import { kinds } from '../../../resources/interventions/kinds.ts'
import { useAct } from '../../act/use-act.tsx'
import { useProjectId } from '../../components/use-project-id.ts'
import { appeal } from './acts.tsx'
import { Appeal } from './notices.tsx'

/** All notices, also those that have ended. */
export function NoticesPage() {
  const projectId = useProjectId()
  const [cursor, setCursor] = useState<string>()
  const start = useAct()
  const query = usePage('customer.notices.list', {
    path: { project_id: projectId },
    query: { limit: 25, ...(cursor && { cursor }) },
  })
  return (
    <>
      <PageHead title="Notices" below="What the operator did to this project’s sending, and why." />
      <List
        label="Notices"
        isProse
        query={query}
        cursor={cursor}
        setCursor={setCursor}
        columns={[
          {
            title: 'Notice',
            cell: (notice) => (
              <>
                {kinds[notice.kind].title(notice)}
                {notice.public_note !== null && (
                  <Text size="sm" c="dimmed">
                    {notice.public_note}
                  </Text>
                )}
                <Appeal of={notice} />
              </>
            ),
          },
          { title: 'Since', cell: ({ created_at }) => <ExactTime at={created_at} /> },
          {
            title: 'Until',
            isExtra: true,
            cell: ({ ended_at, expires_at }) =>
              ended_at !== null ? (
                <ExactTime at={ended_at} />
              ) : expires_at !== null ? (
                <ExactTime at={expires_at} />
              ) : (
                'no expiry'
              ),
          },
          {
            title: 'Status',
            cell: ({ ended_at }) => (ended_at === null ? <Badge tone="warn">in force</Badge> : 'ended'),
          },
          {
            title: 'More',
            changes: ['customer.notices.appeal'],
            cell: (notice) =>
              notice.ended_at === null &&
              notice.appeal === null && (
                <RowMenu
                  of={kinds[notice.kind].title(notice)}
                  acts={[
                    {
                      operation: 'customer.notices.appeal',
                      label: 'Appeal',
                      onClick: () => start(appeal(projectId, notice)),
                    },
                  ]}
                />
              ),
          },
        ]}
        empty={<Empty title="No notices">The operator has not restricted this project.</Empty>}
      />
    </>
  )
}
