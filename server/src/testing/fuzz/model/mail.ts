import type { Chance } from '../../harness/random.ts'
import { absentId } from '../draw.ts'
import type { ExpectedRead } from './expected-read.ts'
import type { Intent, Outcome } from './intent.ts'
import { heldSince, impose, lift } from './interventions.ts'
import { chooseProject, inProject } from './targets.ts'
import { aText, aTime } from './unknown.ts'
import { type Mail, type Message, type Project, planInForce, type View, type World } from './world.ts'

/** A project's mail. No worker runs, so scheduled messages stay scheduled. */

/** Every project's initial mail, inserted before the first counted request. */
export const firstMail = (mark: string): Mail => ({
  messages: (['scheduled', 'queued', 'delivered', 'queued', 'bounced'] as const).map((status, n) => ({
    status,
    address: `to${n}.${mark}@example.net`,
    tag: n % 2 === 0 ? 'even' : 'odd',
    view: {},
  })),
  suppressed: [0, 1, 2].map((n) => `never${n}.${mark}@example.net`),
})

const stopped = ['canceled', 'paused']

/** True if the project is locked or on hold, or has no current subscription. */
const isClosed = (project: Project): boolean =>
  project.view['is_locked'] === true ||
  heldSince(project) !== null ||
  stopped.includes(
    String(project.view['admin_subscription_status'] ?? project.view['billing_subscription_status']),
  )

const messageOnWire = (project: Project, { status, view }: Message): View => {
  const shown = status === 'queued' && isClosed(project) ? 'held' : status
  const [recipient] = (view['recipients'] ?? []) as View[]
  return { ...view, status: shown, recipients: [{ ...recipient, status: shown }] }
}

/** The expected first view of a message. Later reads are compared with the values that the service returned. */
export const newMessage = ({ id }: Project, { status, address, tag }: Message): View => ({
  id: aText(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
  project_id: id,
  status,
  from: 'news@example.com',
  subject: '',
  recipients: [{ address, kind: 'to', status, diagnostic: null, updated_at: aTime }],
  tags: [tag],
  metadata: {},
  size_bytes: 100,
  is_test: false,
  api_key_id: null,
  user_id: null,
  send_at: status === 'scheduled' ? aTime : null,
  created_at: aTime,
})

const queueOnWire = ({ id, mail }: Project, heldAt: unknown): View => {
  const count = (wanted: string) => mail.messages.filter(({ status }) => status === wanted).length
  return {
    project_id: id,
    is_held: heldAt !== null,
    held_at: heldAt,
    waiting: count('queued'),
    scheduled: count('scheduled'),
    leaving: 0,
    awaiting: 0,
  }
}

export const holdQueue = (world: World, chance: Chance): Intent => turn(world, chance, 'hold')
export const releaseQueue = (world: World, chance: Chance): Intent => turn(world, chance, 'release')

function turn(world: World, chance: Chance, act: 'hold' | 'release'): Intent {
  const chosen = chooseProject(world, chance)
  return {
    operation: `queue.${act}`,
    ...inProject(chosen),
    body: {},
    outcome: () => (chosen.project ? turned(chosen.project, act === 'hold') : 'not_found'),
  }
}

function turned(project: Project, isHeld: boolean): Outcome {
  const imposed = isHeld ? impose(project, 'hold') : lift(project, 'hold')
  const before = heldSince(project)
  const queue = { before: { is_held: before !== null }, after: { is_held: isHeld } }
  const isMoved = queue.before.is_held !== isHeld
  return {
    // A second hold changes the interventions, but not the queue.
    change: isMoved
      ? { type: 'queue', ...queue }
      : imposed.change
        ? { type: 'intervention', ...imposed.change }
        : null,
    response: queueOnWire(project, isHeld ? (before ?? aTime) : null),
    version: null,
    commit({ held_at }: View) {
      const resource = imposed.commit()
      if (resource && isHeld && isMoved) resource.view = { ...resource.view, created_at: held_at }
      return { acts: project.acts, id: isMoved || !resource ? project.id : resource }
    },
  }
}

const idOf = ({ view }: Message): string => String(view['id'])

/** Usually one of the project's messages, sometimes another project's or a nonexistent one. */
function chooseMessage(world: World, chance: Chance) {
  const { id: project_id, project } = chooseProject(world, chance)
  const others = world.projects.filter((other) => other !== project)
  const strangers = [
    '00000000-0000-7000-8000-000000000000',
    ...others.flatMap(({ mail }) => mail.messages.map(idOf)),
  ]
  const own = project?.mail.messages ?? []
  const id = own.length > 0 && !chance.happens(0.1) ? idOf(chance.pick(own)) : chance.pick(strangers)
  return { project, message: own.find((one) => idOf(one) === id), params: { project_id, id } }
}

export function cancelMessage(world: World, chance: Chance): Intent {
  const { project, message, params } = chooseMessage(world, chance)
  return {
    operation: 'messages.cancel',
    params,
    exists: () => message !== undefined,
    target: null,
    body: {},
    outcome() {
      if (!project || !message) return 'not_found'
      const { status } = message
      if (status !== 'scheduled') return 'in_use'
      return {
        change: { type: 'message', before: { status }, after: { status, is_cancel_requested: true } },
        response: messageOnWire(project, message),
        version: null,
        commit: () => ({ acts: project.acts, id: idOf(message) }),
      }
    },
  }
}

export function nextMailRead(world: World, chance: Chance): ExpectedRead {
  return chance.pick([
    ...[showQueue, showMessage, listMessages, listSuppressions, showUsage, showReputation],
    ...[showVolumes, showMailboxProviders],
  ])(world, chance)
}

const somewhere = (world: World, chance: Chance): { id: number; project: Project | undefined } =>
  chance.happens(0.1) ? { id: absentId(chance), project: undefined } : chooseProject(world, chance)

export const queueOf = (project: Project): ExpectedRead => ({
  operation: 'queue.show',
  params: { project_id: project.id },
  expected: { view: queueOnWire(project, heldSince(project)), version: null },
})

function showQueue(world: World, chance: Chance): ExpectedRead {
  const { id, project } = somewhere(world, chance)
  return project
    ? queueOf(project)
    : { operation: 'queue.show', params: { project_id: id }, expected: undefined }
}

function showMessage(world: World, chance: Chance): ExpectedRead {
  const { project, message, params } = chooseMessage(world, chance)
  return {
    operation: 'messages.show',
    params,
    expected: project && message && { view: messageOnWire(project, message), version: null },
  }
}

export const messagesOf = (
  project: Project,
  query: Record<string, string> = {},
  passes: (message: Message) => boolean = () => true,
): ExpectedRead => ({
  operation: 'messages.list',
  params: { project_id: project.id },
  query,
  expected: { list: project.mail.messages.filter(passes).map((message) => messageOnWire(project, message)) },
})

function listMessages(world: World, chance: Chance): ExpectedRead {
  const { id, project } = somewhere(world, chance)
  if (!project) return { operation: 'messages.list', params: { project_id: id }, expected: undefined }
  const known = project.mail.messages.map(({ address }) => address)
  const wanted: Partial<Record<'status' | 'tag' | 'address', string>> = {
    ...(chance.happens(0.4) ? { status: chance.pick(['scheduled', 'queued', 'delivered', 'failed']) } : {}),
    ...(chance.happens(0.4) ? { tag: chance.pick(['even', 'odd', 'none']) } : {}),
    ...(chance.happens(0.4) ? { address: chance.pick([...known, 'nobody@example.net']) } : {}),
  }
  const { address, ...rest } = wanted
  const recipient = address && (chance.happens(0.5) ? address.toUpperCase() : address)
  return messagesOf(project, { ...rest, ...(recipient === undefined ? {} : { recipient }) }, (message) =>
    Object.entries(wanted).every(([name, value]) => message[name as keyof typeof wanted] === value),
  )
}

function listSuppressions(world: World, chance: Chance): ExpectedRead {
  const { id, project } = somewhere(world, chance)
  const list = project?.mail.suppressed.map((address) => ({
    address,
    reason: 'manual',
    message_id: null,
    created_at: aTime,
  }))
  return { operation: 'suppressions.list', params: { project_id: id }, expected: list && { list } }
}

const aDay = aText(/^\d{4}-\d\d-\d\d$/)
const noOutcomes = {
  ...{ sent: 0, delivered: 0, deferred: 0, bounced: 0, failed: 0, complained: 0, suppressed: 0 },
}

/** The value that service.ts sets for all caps. */
const cap = 1_000_000

function limitsOf({ resources, mail }: Project, plan: View): object[] {
  const limit = (name: string, used: number, allowed: unknown = cap) => ({ name, used, allowed })
  const invited = resources.members.filter(({ view }) => view['user_id'] === null)
  return [
    limit('max_domains', resources.domains.length, plan['max_domains']),
    limit('max_users', resources.members.length, plan['max_users']),
    limit('max_endpoints', resources.endpoints.length),
    limit('max_routes', resources.routing.length),
    limit('max_api_keys', resources['api-keys'].length),
    limit('max_pending_invitations', invited.length),
    limit('max_suppressions', mail.suppressed.length),
    limit('max_bytes_per_day', 0),
    limit('max_inbound_bytes_per_day', 0),
    limit('max_forwards_per_day', 0),
  ]
}

/** All counters are zero: the messages were inserted directly and never accepted. */
function showUsage(world: World, chance: Chance): ExpectedRead {
  const { id, project } = somewhere(world, chance)
  const plan = project && planInForce(world, project).view
  const period = (limit: unknown) => ({ starts_on: aDay, accepted: 0, limit })
  const view = plan && {
    day: period(plan['max_mails_per_day']),
    month: period(plan['max_mails_per_month']),
    limits: limitsOf(project, plan),
    days: Array.from({ length: 30 }, () => ({ day: aDay, accepted: 0, ...noOutcomes })),
    hours: Array.from({ length: 24 }, () => ({ starts_at: aTime, ...noOutcomes })),
  }
  return {
    operation: 'usage.show',
    params: { project_id: id },
    expected: view && { view, version: null },
  }
}

/** Without a worker, nothing is counted. */
function showMailboxProviders(world: World, chance: Chance): ExpectedRead {
  const { id, project } = somewhere(world, chance)
  const view = project && { from: aTime, to: aTime, counted_until: aTime, mailbox_providers: [] }
  return {
    operation: 'mailbox-providers.show',
    params: { project_id: id },
    expected: view && { view, version: null },
  }
}

/** Without mail, the score is 100 and the offset that administrators have set. */
function showReputation(world: World, chance: Chance): ExpectedRead {
  const { id, project } = somewhere(world, chance)
  const part = (
    kind: string,
    volume: number,
    [tolerated_rate, worst_rate]: number[],
    max_points: number,
  ) => ({
    ...{ kind, count: 0, volume, rate: 0, tolerated_rate, worst_rate, max_points, points: 0 },
  })
  const view = project && {
    ...{ project_id: id, volume: 0, min_volume: 50 },
    parts: [
      part('bounced', 50, [0.02, 0.1], 100),
      part('complained', 500, [0.001, 0.005], 100),
      part('failed', 50, [0.1, 0.5], 50),
    ],
    computed_score: 100,
    score_offset: Number(project.view['reputation_score']) - 100,
    reputation_score: project.view['reputation_score'],
  }
  return {
    operation: 'reputation.show',
    params: { project_id: id },
    expected: view && { view, version: null },
  }
}

/** In the order of the ids, without projects that do not exist. */
function showVolumes(world: World, chance: Chance): ExpectedRead {
  const projects = world.projects.filter(() => chance.happens(0.5))
  const ids = projects.flatMap(({ id }) => (chance.happens(0.2) ? [absentId(chance), id] : [id]))
  const none = { sent: 0, delivered: 0, bounced: 0, failed: 0, complained: 0 }
  return {
    operation: 'projects.volumes',
    params: {},
    query: {
      ids: ids.length === 0 ? String(absentId(chance)) : ids.join(','),
      ...(chance.happens(0.5) ? { range: chance.pick(['24h', '7d', '30d']) } : {}),
    },
    expected: {
      view: {
        data: projects.map(({ id }) => ({
          ...{ project_id: id, ...none, bounce_rate: null, complaint_rate: null },
        })),
        unreachable_cells: [],
      },
      version: null,
    },
  }
}
