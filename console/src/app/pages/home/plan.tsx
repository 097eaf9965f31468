import { Title } from '@mantine/core'
import type { CustomerProject } from '../../../api/operations.gen.ts'
import { DescriptionList } from '../../../components/description-list.tsx'
import { number } from '../../../components/numbers.ts'

const support = { community: 'community', email: 'by email', priority: 'priority' }

export function Plan({ project: { plan } }: { project: CustomerProject }) {
  return (
    <section>
      <Title order={2} mb="sm">
        Plan
      </Title>
      <DescriptionList
        items={[
          ['Name', plan.name],
          ['Messages per day', number(plan.max_mails_per_day)],
          ['Messages per month', number(plan.max_mails_per_month)],
          ['Domains', number(plan.max_domains)],
          ['Members', number(plan.max_users)],
          ['Support', support[plan.support_level]],
        ]}
      />
    </section>
  )
}
