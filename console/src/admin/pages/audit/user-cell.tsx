import type { User } from '../../../api/operations.gen.ts'
import { To } from '../../../components/link.tsx'

/** A link to a user, by name if it is known. */
export function UserCell({ id, users }: { id: number; users: readonly User[] }) {
  const user = users.find((one) => one.id === id)
  return (
    // In a narrow column, a name is not broken within a word.
    <To to="/users" search={{ q: user?.email }} style={user?.name ? { overflowWrap: 'break-word' } : {}}>
      {user ? user.name || user.email : `User ${id}`}
    </To>
  )
}
