import { Button, Menu, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../../api/client.ts'
import type { Domain } from '../../../api/operations.gen.ts'
import { useOne } from '../../../api/queries.ts'
import { Status } from '../../../components/badge.tsx'
import { Can, useCan } from '../../../components/can.tsx'
import { HeadActions } from '../../../components/head-actions.tsx'
import { To } from '../../../components/link.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { DnsRecords } from '../../../resources/domains/dns-records.tsx'
import { Identity } from '../../../resources/domains/identity.tsx'
import { Verification } from '../../../resources/domains/verification.tsx'
import { useAct } from '../../act/use-act.tsx'
import { changeProvider, deleteDomain, renameDomain, rotateDomainKey } from './acts.tsx'
import { useDomain } from './use-domain.tsx'

const route = getRouteApi('/projects/$projectId/domains/$id')

export function DomainPage() {
  const { projectId, id } = route.useParams()
  const { query, check, isChecking } = useDomain(Number(projectId), Number(id))
  return (
    <QueryState query={query} rows={10}>
      {(loaded) => (
        <>
          <Head loaded={loaded} check={check} isChecking={isChecking} />
          <Stack gap="xl">
            <Verification domain={loaded.data} />
            <DnsRecords domain={loaded.data} />
            <Identity domain={loaded.data} />
          </Stack>
        </>
      )}
    </QueryState>
  )
}

function Head({
  loaded,
  check,
  isChecking,
}: {
  loaded: Answer<Domain>
  check: () => void
  isChecking: boolean
}) {
  const start = useAct()
  const can = useCan()
  const navigate = route.useNavigate()
  const { projectId } = route.useParams()
  const { name, status, mta_provider } = loaded.data
  const project = useOne('customer.projects.show', { project_id: Number(projectId) }).data?.data
  // Whether the operator has configured Amazon SES is known only to the server.
  const choices: Domain['mta_provider'][] = project?.allow_service_mta ? ['service', 'ses'] : ['ses']
  const toList = () => void navigate({ to: '/projects/$projectId/domains', params: { projectId } })
  return (
    <PageHead
      title={name}
      above={
        <To to="/projects/$projectId/domains" params={{ projectId }}>
          Domains
        </To>
      }
      beside={<Status value={status} />}
    >
      <Can change="customer.domains.verify">
        <Button
          variant={status === 'verified' ? 'default' : 'filled'}
          onClick={() => !isChecking && check()}
          aria-disabled={isChecking}
        >
          {isChecking ? 'Checking…' : 'Check now'}
        </Button>
      </Can>
      <HeadActions of="domain" edit={false}>
        {mta_provider === 'service' && can('customer.domains.rotate') && (
          <Menu.Item onClick={() => start(rotateDomainKey(loaded))}>Rotate DKIM key</Menu.Item>
        )}
        {can('customer.domains.edit') && (
          <Menu.Item onClick={() => start(renameDomain(loaded))}>Rename domain</Menu.Item>
        )}
        {can('customer.domains.edit') && choices.some((provider) => provider !== mta_provider) && (
          <Menu.Item onClick={() => start(changeProvider(loaded, choices))}>Change provider</Menu.Item>
        )}
        {can('customer.domains.delete') && (
          <Menu.Item c="var(--postern-bad)" onClick={() => start(deleteDomain(loaded, toList))}>
            Delete domain
          </Menu.Item>
        )}
      </HeadActions>
    </PageHead>
  )
}
