import { Button, Menu, Stack } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../../api/client.ts'
import type { Domain } from '../../../api/operations.gen.ts'
import { Status } from '../../../components/badge.tsx'
import { Can, useCan } from '../../../components/can.tsx'
import { HeadActions } from '../../../components/head-actions.tsx'
import { To } from '../../../components/link.tsx'
import { PartHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { DnsRecords } from '../../../resources/domains/dns-records.tsx'
import { Identity } from '../../../resources/domains/identity.tsx'
import { Verification } from '../../../resources/domains/verification.tsx'
import { useAct } from '../../act/use-act.tsx'
import { deleteDomain, editDomain, registerDomain, rotateDomainKey, verifyDomain } from './acts.tsx'
import { useDomain } from './use-domain.tsx'

const route = getRouteApi('/projects/$projectId/domains/$id')

export function DomainPage() {
  const { projectId, id } = route.useParams()
  const query = useDomain(Number(projectId), Number(id))
  return (
    <QueryState query={query} rows={10}>
      {(loaded) => (
        <>
          <Head loaded={loaded} />
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

function Head({ loaded }: { loaded: Answer<Domain> }) {
  const start = useAct()
  const can = useCan()
  const navigate = route.useNavigate()
  const { projectId } = route.useParams()
  const { id, name, status, mta_provider } = loaded.data
  const toList = () => void navigate({ to: '/projects/$projectId/domains', params: { projectId } })
  return (
    <PartHead
      title={name}
      above={
        <>
          <To to="/projects/$projectId/domains" params={{ projectId }}>
            Domains
          </To>{' '}
          / {id}
        </>
      }
      beside={<Status value={status} />}
    >
      <Can change="domains.verify">
        <Button variant="default" onClick={() => start(verifyDomain(loaded))}>
          Check now
        </Button>
      </Can>
      <HeadActions of="domain" edit={can('domains.edit') && (() => start(editDomain(loaded)))}>
        {mta_provider === 'service' && can('domains.rotate') && (
          <Menu.Item onClick={() => start(rotateDomainKey(loaded))}>Rotate DKIM key</Menu.Item>
        )}
        {can('domains.edit') && (
          <Menu.Item onClick={() => start(registerDomain(loaded))}>Re-register</Menu.Item>
        )}
        {can('domains.delete') && (
          <Menu.Item c="var(--postern-bad)" onClick={() => start(deleteDomain(loaded, toList))}>
            Delete domain
          </Menu.Item>
        )}
      </HeadActions>
    </PartHead>
  )
}
