import { type AdminSession, openAdminSession } from '../console/admin-session.ts'
import type { Person } from '../console/browser.ts'
import { body, makePlan } from '../stage.ts'

/** An installation with a customer, Cleo, who signs in to the app and owns a project. */
export interface AppSession extends AdminSession {
  cleo: Person
  project: { id: number; name: string }
  /** Creates another customer. */
  newCustomer(name: string): Promise<Person>
}

const password = 'a long enough password'

export async function openAppSession(
  settings: Record<string, string> = {},
  host?: 'localhost',
): Promise<AppSession> {
  const session = await openAdminSession(settings, host)
  const { admin, database, postern } = session

  const newCustomer = async (name: string): Promise<Person> => {
    const email = `${name.toLowerCase()}@example.net`
    const [user] = await database.query<{ id: number }>(
      'insert into control.users (email, name) values ($1, $2) returning id',
      [email, name],
    )
    const printed = await postern('users', 'reset-password', '--email', email, '--reason', 'New')
    const token = /#(pwr_[\w-]+)/.exec(printed)?.[1]
    const response = await fetch(new URL('/v1/auth/password/reset', session.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, new_password: password }),
    })
    if (!response.ok) throw new Error(`the password of ${email} could not be set: ${response.status}`)
    return { id: Number(user?.id), email, password, home: '/app/' }
  }

  const cleo = await newCustomer('Cleo')
  const { id: planId } = await makePlan(admin, { name: 'Starter' })
  const project = await body<{ id: number; name: string }>(
    201,
    admin.post('/admin/projects', { name: 'Acme', user_id: cleo.id, plan_id: planId }),
  )
  const reason = 'A customer since 2019'
  await body(200, admin.patch(`/admin/projects/${project.id}`, { allow_service_mta: true, reason }))
  return { ...session, cleo, project, newCustomer }
}
