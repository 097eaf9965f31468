import { Alert, Button, Group, Loader, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useEffect, useState } from 'react'
import { newIdempotencyKey } from '../../../act/idempotency-key.ts'
import { call } from '../../../api/client.ts'
import type { CustomerProject, Domain, Message } from '../../../api/operations.gen.ts'
import { refetchAll, useAll, useAnswer, useOne } from '../../../api/queries.ts'
import { useMe } from '../../../api/session.ts'
import { useCan } from '../../../components/can.tsx'
import { Copy } from '../../../components/copy.tsx'
import { Failure } from '../../../components/failure.tsx'
import { To } from '../../../components/link.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { QueryState } from '../../../components/states.tsx'
import { DnsRecords } from '../../../resources/domains/dns-records.tsx'
import { DomainNameField } from '../../../resources/domains/name-field.tsx'
import { Timeline } from '../../../resources/messages/timeline.tsx'
import { FirstMailCode } from '../../components/first-mail-code.tsx'
import { useProjectId } from '../../components/use-project-id.ts'
import { nameAdvice } from '../domains/acts.tsx'
import { useDomain } from '../domains/use-domain.tsx'
import { PendingInvitations } from '../projects/pending-invitations.tsx'
import classes from './steps.module.css'
import { Step, Steps } from './steps.tsx'

/** From an account to the first delivered mail, on one page. */
export function FirstRunPage() {
  const projectId = useProjectId()
  const project = useOne('customer.projects.show', { project_id: projectId })
  const domains = useAll('customer.domains.list', { project_id: projectId })
  return (
    <>
      <Head />
      <QueryState query={project}>
        {({ data }) => (
          <QueryState query={domains}>
            {(all) => (
              <Setup project={data} domain={all.find(({ status }) => status === 'verified') ?? all.at(-1)} />
            )}
          </QueryState>
        )}
      </QueryState>
    </>
  )
}

/** The same page for a user who has no project yet. */
export function NewProjectPage() {
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const creating = useCreation(
    (idempotencyKey) => call('customer.projects.create', { body: { name: name.trim() }, idempotencyKey }),
    ({ id }) =>
      void navigate({
        to: '/projects/$projectId/start',
        params: { projectId: String(id) },
        replace: true,
      }),
  )
  return (
    <>
      <Head />
      <PendingInvitations />
      <Steps>
        <AccountStep />
        <Step title={titles.project}>
          <InlineForm
            about="A project has its own domains, API keys and members: one for each of your products, for example."
            button="Create project"
            creating={creating}
            isReady={name.trim() !== ''}
          >
            <TextInput
              label="Project name"
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              placeholder="Web shop"
              maxLength={100}
              required
              autoFocus
            />
          </InlineForm>
        </Step>
        <Step title={titles.domain} isOpen={false} />
        <Step title={titles.key} isOpen={false} />
        <Step title={titles.mail} isOpen={false} />
      </Steps>
    </>
  )
}

const titles = {
  account: 'Account',
  project: 'Name your project',
  domain: 'Add the domain that you send from',
  key: 'Create an API key',
  mail: 'Send your first mail',
}

const Head = () => (
  <PageHead
    title="Get started"
    below="From here to your first delivered mail. Each step is ticked when it is done."
  />
)

function AccountStep() {
  const { email } = useMe()
  return <Step title={titles.account} done={`Signed in as ${email}`} />
}

function Setup({ project, domain }: { project: CustomerProject; domain: Domain | undefined }) {
  const path = { project_id: project.id }
  const [secret, setSecret] = useState<string>()
  const keys = useAnswer('customer.api-keys.list', { path, query: { limit: 1 } })
  const isVerified = domain?.status === 'verified'
  const hasKey = secret !== undefined || (keys.data?.data.length ?? 0) > 0
  return (
    <Steps>
      <AccountStep />
      <Step title="Project" done={project.name} />
      <Step
        title={titles.domain}
        done={
          isVerified && (
            <>
              <To to="/projects/$projectId/domains/$id" params={linkTo(domain)}>
                {domain.name}
              </To>{' '}
              is verified.
            </>
          )
        }
      >
        {domain ? <Publish domain={domain} /> : <AddDomain projectId={project.id} />}
      </Step>
      <Step
        title={titles.key}
        isOpen={domain !== undefined}
        done={
          hasKey &&
          (secret === undefined ? (
            <To to="/projects/$projectId/api-keys" params={{ projectId: String(project.id) }}>
              Your API keys
            </To>
          ) : (
            <NewSecret secret={secret} />
          ))
        }
      >
        <CreateKey projectId={project.id} done={setSecret} />
      </Step>
      <FirstMail project={project} domain={isVerified ? domain : undefined} hasKey={hasKey} secret={secret} />
    </Steps>
  )
}

const linkTo = ({ project_id, id }: Domain) => ({ projectId: String(project_id), id: String(id) })

/** Posts once for each click, and again after a lost response without making a second one. */
function useCreation<T>(make: (idempotencyKey: string) => Promise<T>, done: (made: T) => void) {
  const [idempotencyKey] = useState(newIdempotencyKey)
  return useMutation({
    // The response may contain a secret.
    gcTime: 0,
    mutationFn: () => make(idempotencyKey),
    onSuccess: async (made) => {
      await refetchAll()
      done(made)
    },
  })
}

function InlineForm({
  about,
  button,
  creating,
  isReady,
  children,
}: {
  about: string
  button: string
  creating: { mutate: () => void; isPending: boolean; error: Error | null }
  isReady: boolean
  children?: ReactNode
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isReady && !creating.isPending) creating.mutate()
  }
  return (
    <Stack gap="sm" mt={4}>
      <Text size="sm" c="dimmed">
        {about}
      </Text>
      <form className={classes.form} onSubmit={submit}>
        {children}
        <Button type="submit" loading={creating.isPending} disabled={!isReady}>
          {button}
        </Button>
      </form>
      <Failure of={creating.error} />
    </Stack>
  )
}

function AddDomain({ projectId }: { projectId: number }) {
  const [name, setName] = useState('')
  const can = useCan()
  const creating = useCreation(
    (idempotencyKey) =>
      call('customer.domains.create', {
        path: { project_id: projectId },
        body: { name: name.trim() },
        idempotencyKey,
      }),
    () => undefined,
  )
  if (!can('customer.domains.create')) return <ByOthers />
  return (
    <InlineForm about={nameAdvice} button="Add domain" creating={creating} isReady={name.trim() !== ''}>
      <DomainNameField label="Domain" value={name} onChange={setName} autoFocus />
    </InlineForm>
  )
}

const ByOthers = () => (
  <Text size="sm" c="dimmed">
    Your role is viewer. An owner, admin or developer of the project takes this step.
  </Text>
)

function Publish({ domain: { project_id, id } }: { domain: Domain }) {
  const { query, check, isChecking } = useDomain(project_id, id)
  const can = useCan()
  const isVerified = query.data?.data.status === 'verified'
  // The list of domains, which decides whether the step is done, is not polled.
  useEffect(() => {
    if (isVerified) void refetchAll()
  }, [isVerified])
  return (
    <QueryState query={query}>
      {({ data }) => (
        <Stack gap="md" mt={4}>
          <Text size="sm" c="dimmed">
            Publish these records for {data.name} at your DNS host, one by one or by importing the zone file.
            Then check them. This page ticks off each record that is found.
          </Text>
          <DnsRecords domain={data} />
          <Group gap="sm">
            {can('customer.domains.verify') && (
              <Button onClick={() => !isChecking && check()} aria-disabled={isChecking}>
                {isChecking ? 'Checking…' : 'Check now'}
              </Button>
            )}
            <Text size="sm" c="dimmed" flex="1 1 240px">
              Some DNS hosts take minutes or hours to publish records. You can close this page: checks
              continue, and the domain is verified as soon as all required records are found.
            </Text>
          </Group>
        </Stack>
      )}
    </QueryState>
  )
}

function CreateKey({ projectId, done }: { projectId: number; done: (secret: string) => void }) {
  const can = useCan()
  const creating = useCreation(
    (idempotencyKey) =>
      call('customer.api-keys.create', {
        path: { project_id: projectId },
        body: { name: 'First key', scopes: ['messages:send'] },
        idempotencyKey,
      }),
    ({ secret }) => done(secret),
  )
  if (!can('customer.api-keys.create')) return <ByOthers />
  return (
    <InlineForm
      about="Your application sends with it. This key can send mail and nothing else."
      button="Create API key"
      creating={creating}
      isReady
    />
  )
}

/** The secret leaves the browser's memory with the page. */
const NewSecret = ({ secret }: { secret: string }) => (
  <Group gap="sm" mt={4}>
    <code className={classes.secret}>{secret}</code>
    <Copy text={secret} label="Copy secret" />
    <Text size="sm">Shown only once: store it now.</Text>
  </Group>
)

const messagePollMs = 1500

/** Shows the code, waits for the project's first message, and follows it to its delivery. */
function FirstMail({
  project,
  domain,
  hasKey,
  secret,
}: {
  project: CustomerProject
  domain: Domain | undefined
  hasKey: boolean
  secret: string | undefined
}) {
  const { email } = useMe()
  const path = { project_id: project.id }
  const [isOver, setIsOver] = useState(false)
  const messages = useAnswer(
    'customer.messages.list',
    { path, query: { limit: 1 } },
    { pollMs: !isOver && messagePollMs },
  )
  const [message] = messages.data?.data ?? []
  const isDelivered = message?.status === 'delivered'
  if (isDelivered !== isOver) setIsOver(isDelivered)
  const isOpen = hasKey && domain !== undefined
  return (
    <Step
      title={titles.mail}
      isOpen={isOpen || message !== undefined}
      done={message && isDelivered && <Delivered message={message} />}
    >
      <Stack gap="sm" mt={4}>
        {domain && (
          <>
            <Text size="sm" c="dimmed">
              Paste this into a terminal or your application. It sends a mail to you.
            </Text>
            <FirstMailCode
              mail={{ secret: secret ?? 'YOUR_API_KEY', from: `hello@${domain.name}`, to: email }}
              isMain
            />
          </>
        )}
        {message ? <Progress message={message} /> : <Waiting />}
      </Stack>
    </Step>
  )
}

const Waiting = () => (
  <Group gap="sm" role="status">
    <Loader size="xs" aria-hidden="true" />
    <Text size="sm">Waiting for your first mail…</Text>
  </Group>
)

/** The events of the message, as they happen. */
function Progress({ message: { project_id, id } }: { message: Message }) {
  const events = useAnswer(
    'customer.messages.events',
    { path: { project_id, id } },
    { pollMs: messagePollMs },
  )
  return (
    <section aria-label="Your first mail">
      <Timeline events={events.data?.data ?? []} />
    </section>
  )
}

function Delivered({ message }: { message: Message }) {
  const projectId = String(message.project_id)
  return (
    <Stack gap="sm" mt={4}>
      <Alert color="green" variant="light" title="Your first mail was delivered" role="status">
        <Text size="sm" c="var(--mantine-color-text)" style={{ overflowWrap: 'anywhere' }}>
          “{message.subject}” to {message.recipients[0]?.address}
        </Text>
      </Alert>
      <Progress message={message} />
      <Group gap="lg">
        <To to="/projects/$projectId" params={{ projectId }}>
          Go to the project
        </To>
        <To to="/projects/$projectId/endpoints" params={{ projectId }}>
          Receive events
        </To>
        <To to="/projects/$projectId/members" params={{ projectId }}>
          Invite others
        </To>
      </Group>
    </Stack>
  )
}
