import { Alert, Button, Menu, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { Answer } from '../../api/client.ts'
import type { Domain } from '../../api/operations.gen.ts'
import { useAct } from '../../components/act/acts.tsx'
import { Status } from '../../components/badge.tsx'
import { Facts } from '../../components/facts.tsx'
import { To } from '../../components/link.tsx'
import { PartHead } from '../../components/page-head.tsx'
import { Asked } from '../../components/states.tsx'
import { When } from '../../components/when.tsx'
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
    <Asked query={query} rows={10}>
      {(seen) => (
        <>
          <Head seen={seen} />
          <Stack gap="xl">
            <Verification domain={seen.data} />
            <DnsRecords domain={seen.data} />
            <Standing domain={seen.data} />
          </Stack>
        </>
      )}
    </Asked>
  )
}

function Head({ seen }: { seen: Answer<Domain> }) {
  const start = useAct()
  const navigate = route.useNavigate()
  const { projectId } = route.useParams()
  const { id, name, status, mta_provider } = seen.data
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
      <Button variant="default" onClick={() => start(verifyDomain(seen))}>
        Verify now
      </Button>
      <Button variant="default" onClick={() => start(editDomain(seen))}>
        Edit
      </Button>
      <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
        <Menu.Target>
          <Button variant="default">More…</Button>
        </Menu.Target>
        <Menu.Dropdown>
          {mta_provider === 'service' && (
            <Menu.Item onClick={() => start(rotateDomainKey(seen))}>Rotate DKIM key</Menu.Item>
          )}
          <Menu.Item onClick={() => start(registerDomain(seen))}>Register anew</Menu.Item>
          <Menu.Item onClick={() => start(deleteDomain(seen, toList))}>Delete domain</Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </PartHead>
  )
}

/** What a domain waits for. It is looked at by itself, and this with it. */
function Verification({ domain: { status, last_checked_at, last_check_error } }: { domain: Domain }) {
  const [colour, title, advice] = verdicts[status]
  const isWell = status === 'verified' && last_check_error === null
  return (
    <Alert color={isWell ? 'green' : colour} title={title} role="status" variant="light">
      <Text size="sm" c="var(--mantine-color-text)">
        {isWell || status !== 'verified'
          ? advice
          : 'It still sends, for 3 days after something went missing.'}{' '}
        Last looked: <When at={last_checked_at} />.
      </Text>
      {last_check_error !== null && (
        <Text size="sm" mt={4} c="var(--mantine-color-text)" style={{ overflowWrap: 'anywhere' }}>
          <b>What was missed:</b> {last_check_error}
        </Text>
      )}
    </Alert>
  )
}

const verdicts: Record<Domain['status'], [colour: string, title: string, advice: string]> = {
  pending: [
    'yellow',
    'Waiting for its DNS records',
    'It sends nothing yet. The records are looked for after 1, 2, 4 … minutes, and what is found shows here by itself.',
  ],
  verified: ['yellow', 'Verified', 'It may send.'],
  failed: [
    'red',
    'Verification failed',
    'It sends nothing. Have the records below published, then verify it now.',
  ],
}

function Standing({ domain }: { domain: Domain }) {
  const { identity } = domain
  return (
    <section aria-label="Identity" style={{ maxWidth: 480 }}>
      <Facts
        facts={[
          ['Provider', providers[domain.mta_provider]],
          ['Identity', <Status key="identity" value={identity.state} />],
          ['DKIM selector in use', identity.selector ?? 'kept by the provider'],
          ['Registered', <When key="registered" at={identity.registered_at} />],
          ['Verified', <When key="verified" at={domain.verified_at} />],
          ['Added', <When key="added" at={domain.created_at} />],
        ]}
      />
    </section>
  )
}
