import classes from './changes.module.css'
import { useZone } from './use-zone.tsx'
import { exactTime, otherZone, type Zone } from './zone.ts'

export interface Change {
  resource: string
  id: number | string | null
  field: string
  before?: unknown
  after?: unknown
}

/**
 * Values before and after, field by field, in previews, audit entries and edit conflicts. Fields of other resources than the
 * first one are shown with their resource.
 */
export function Changes({
  changes,
  before = 'Now',
  after = 'After',
  nameOf = () => undefined,
}: {
  changes: Change[]
  before?: string
  after?: string
  /** A name to be shown instead of an id, or a short text for a nested value. */
  nameOf?: (field: string, value: unknown) => string | undefined
}) {
  const [main] = changes
  const isMain = ({ resource, id }: Change) => resource === main?.resource && id === main.id
  return (
    <table className={classes.changes}>
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">{before}</th>
          <th scope="col">{after}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map((change) => {
          const { resource, id, field, before: was, after: is } = change
          return (
            <tr key={`${resource} ${id} ${field}`}>
              <th scope="row" title={field}>
                {!isMain(change) && (
                  <span className={classes.subject}>
                    {resource.replaceAll('_', ' ')} {id}{' '}
                  </span>
                )}
                {labelOf(field, resource)}
              </th>
              <td>
                <Value of={was} name={nameOf(field, was)} />
              </td>
              <td>
                {isUnknown(field, was, is) ? (
                  'not known yet'
                ) : (
                  <Value of={is} name={nameOf(field, is)} isNew />
                )}
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}

const labels: Record<string, string> = {
  id: 'ID',
  url: 'URL',
  user_id: 'Owner',
  plan: 'Current plan',
  plan_id: 'Plan',
  admin_plan_id: 'Plan override',
  admin_subscription_status: 'Subscription status override',
  billing_subscription_id: 'Subscription',
  billing_subscription_status: 'Subscription status',
  billing_product_id: 'Billing product',
  allow_service_mta: 'Shared mail servers',
  mta_provider: 'Provider',
  max_domains: 'Domains (maximum)',
  max_users: 'Members (maximum)',
  max_mails_per_day: 'Messages per day (maximum)',
  max_mails_per_month: 'Messages per month (maximum)',
  score_offset: 'Score offset',
  allowed_ips: 'Allowed IP addresses',
  dns_records: 'DNS records',
  endpoint_id: 'Endpoint',
  domain_id: 'Domain',
  identity_id: 'Identity',
  only_undelivered: 'Undelivered only',
  event_id: 'Event',
  send_at: 'Scheduled',
  tripped_at: 'Stopped by the breaker',
  applies_to: 'Applies to',
  plan_ids: 'Plans',
  except_project_ids: 'Except projects',
  window_minutes: 'Window (minutes)',
  duration_minutes: 'Duration (minutes)',
  cooldown_minutes: 'Cooldown (minutes)',
  matched: 'Projects',
}

/** `is_locked` is shown as "Locked", `last_checked_at` as "Last checked". */
export function labelOf(field: string, resource?: string): string {
  if (resource === 'member' && field === 'user_id') return 'User'
  const words = field.replace(/^is_/, '').replace(/_at$/, '').replaceAll('_', ' ')
  return labels[field] ?? words.charAt(0).toUpperCase() + words.slice(1)
}

/** In a preview: a value that is assigned when the change is made, such as an id or the DNS records of a new name. */
const isUnknown = (field: string, was: unknown, is: unknown): boolean =>
  is === null && (was === null || field === 'dns_records')

function Value({ of, name, isNew = false }: { of: unknown; name: string | undefined; isNew?: boolean }) {
  const zone = useZone()
  if (isEmpty(of)) return <span className={classes.none}>none</span>
  const title = isTime(of) ? exactTime(of, otherZone(zone)) : undefined
  return (
    <span className={isNew ? classes.is : classes.was} title={title}>
      {name ?? textOf(of, zone)}
    </span>
  )
}

export function textOf(value: unknown, zone: Zone): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (isTime(value)) return exactTime(value, zone)
  if (typeof value === 'string') return value
  if (isList(value)) return value.join(', ')
  return isFlat(value) ? linesOf(value, zone) : JSON.stringify(value, null, 1)
}

/** An object, such as the intervention of a policy, field by field. */
const linesOf = (value: object, zone: Zone): string =>
  Object.entries(value)
    .map(([field, part]) => `${labelOf(field)}: ${isEmpty(part) ? 'none' : textOf(part, zone)}`)
    .join('\n')

/** RFC 3339, in UTC. */
const isTime = (value: unknown): value is string =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value)

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (Array.isArray(value) && value.length === 0)

const isList = (value: unknown): value is (string | number)[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string' || typeof item === 'number')

/** An object without objects inside. */
const isFlat = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((part) => typeof part !== 'object' || isEmpty(part) || isList(part))

/** The differences between two states of one resource. */
export function differences(
  resource: string,
  id: number | string | null,
  before: object | null,
  after: object | null,
): Change[] {
  const fieldsOf = (state: object | null) => (state ?? {}) as Record<string, unknown>
  const [was, is] = [fieldsOf(before), fieldsOf(after)]
  return [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((field) => JSON.stringify(was[field]) !== JSON.stringify(is[field]))
    .map((field) => ({ resource, id, field, before: was[field], after: is[field] }))
}
