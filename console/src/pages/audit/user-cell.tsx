import type { User } from '../../api/operations.gen.ts'
import { To } from '../../components/link.tsx'

/** A link to a user, by name if it is known. */
export function UserCell({ id, users }: { id: number; users: readonly User[] }) {
  const user = users.find((one) => one.id === id)
  return (
    <To to="/users" search={{ q: user?.email }}>
      {user ? user.name || user.email : `User ${id}`}
    </To>
  )
}
