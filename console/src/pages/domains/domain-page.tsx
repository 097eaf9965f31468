import { Alert, Button, Menu, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../api/client.ts'
import type { Domain } from '../../api/operations.gen.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Can, useCan } from '../../components/act/can.tsx'
import { Status } from '../../components/badge.tsx'
import { DescriptionList } from '../../components/description-list.tsx'
import { HeadActions } from '../../components/head-actions.tsx'
import { To } from '../../components/link.tsx'
import { PartHead } from '../../components/page-head.tsx'
import { RelativeTime } from '../../components/relative-time.tsx'
import { QueryState } from '../../components/states.tsx'
import {
  deleteDomain,
  editDomain,
  providers,
  registerDomain,
  rotateDomainKey,
  verifyDomain,
} from './acts.tsx'
import { DnsRecords, useDomain } from './dns-records.tsx'

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

/** The state of verification. The page polls the domain. */
function Verification({ domain: { status, last_checked_at, last_check_error } }: { domain: Domain }) {
  const [colour, title, advice] = verificationTexts[status]
  const isHealthy = status === 'verified' && last_check_error === null
  return (
    <Alert color={isHealthy ? 'green' : colour} title={title} role="status" variant="light">
      <Text size="sm" c="var(--mantine-color-text)">
        {isHealthy || status !== 'verified'
          ? advice
          : 'Can still send. Sending stops 3 days after a record goes missing.'}{' '}
        Last checked: <RelativeTime at={last_checked_at} />.
      </Text>
      {last_check_error !== null && (
        <Text size="sm" mt={4} c="var(--mantine-color-text)" style={{ overflowWrap: 'anywhere' }}>
          <b>Missing:</b> {last_check_error}
        </Text>
      )}
    </Alert>
  )
}

const verificationTexts: Record<Domain['status'], [colour: string, title: string, advice: string]> = {
  pending: [
    'yellow',
    'Waiting for DNS records',
    'Cannot send yet. DNS is checked after 1, 2, 4 … minutes, and this page updates automatically.',
  ],
  verified: ['yellow', 'Verified', 'Can send.'],
  failed: ['red', 'Verification failed', 'Cannot send. Publish the records below, then choose “Check now”.'],
}

function Identity({ domain }: { domain: Domain }) {
  const { identity } = domain
  return (
    <section aria-label="Identity" style={{ maxWidth: 480 }}>
      <DescriptionList
        items={[
          ['Provider', providers[domain.mta_provider]],
          ['Identity', <Status key="identity" value={identity.state} />],
          ['Active DKIM selector', identity.selector ?? 'managed by the provider'],
          ['Registered', <RelativeTime key="registered" at={identity.registered_at} />],
          ['Verified', <RelativeTime key="verified" at={domain.verified_at} />],
          ['Added', <RelativeTime key="added" at={domain.created_at} />],
        ]}
      />
    </section>
  )
}
