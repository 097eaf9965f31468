import classes from './changes.module.css'

export interface Change {
  resource: string
  id: number | string | null
  field: string
  before?: unknown
  after?: unknown
}

/** Field by field, what was and what is: in previews, in the audit, and between two operators. */
export function Changes({
  changes,
  before = 'Now',
  after = 'Then',
}: {
  changes: Change[]
  before?: string
  after?: string
}) {
  const subjects = new Set(changes.map(({ resource, id }) => `${resource} ${id}`))
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
        {changes.map(({ resource, id, field, before: was, after: is }) => (
          <tr key={`${resource} ${id} ${field}`}>
            <th scope="row">
              {subjects.size > 1 && (
                <span className={classes.subject}>
                  {resource.replaceAll('_', ' ')} {id}{' '}
                </span>
              )}
              {field}
            </th>
            <td>
              <Value of={was} />
            </td>
            <td>{isUnknown(was, is) ? 'not known yet' : <Value of={is} isNew />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Of a preview: what is only made when it is really done, such as an id. */
const isUnknown = (was: unknown, is: unknown): boolean => was === null && is === null

function Value({ of, isNew = false }: { of: unknown; isNew?: boolean }) {
  const isNone = of === null || of === undefined || (Array.isArray(of) && of.length === 0)
  if (isNone) return <span className={classes.none}>none</span>
  const text = typeof of === 'string' ? of : isListOfText(of) ? of.join(', ') : JSON.stringify(of, null, 1)
  return <span className={isNew ? classes.is : classes.was}>{text}</span>
}

const isListOfText = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

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
