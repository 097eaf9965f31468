import { differences } from '../../components/changes.tsx'
import { Changes } from '../components/changes.tsx'

/** Fields that change automatically or with every edit. */
const ignoredFields = [
  'updated_at',
  'last_success_at',
  'consecutive_failures',
  'last_used_at',
  'last_checked_at',
  'last_check_error',
]

/** What was changed while a dialog was open. */
export function ChangedFields({ before, now }: { before: unknown; now: unknown }) {
  return (
    <Changes
      changes={differences('resource', null, before as object, now as object).filter(
        ({ field }) => !ignoredFields.includes(field),
      )}
      before="When you opened it"
      after="Now"
    />
  )
}
