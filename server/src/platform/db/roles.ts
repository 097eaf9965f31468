/**
 * The database roles that the application acts as (see server/roles.sql for what each may do).
 *
 * A plane's connections take their role at start-up (`role` is an ordinary setting, accepted in the startup
 * packet), so there is no moment in which a connection is more than its plane, and nothing to reset when it
 * goes back to the pool.
 */
export type DbRole = 'admin' | 'customer' | 'mail' | 'identity'

export const dbRoles: readonly DbRole[] = ['admin', 'customer', 'mail', 'identity']

export const roleName = <Role extends DbRole | 'readonly'>(role: Role): `postern_${Role}` => `postern_${role}`

export const ownerRole = 'postern_owner'

/** For people and dashboards, and for `postern signer`, which has a login of its own. */
export const readonlyRole = 'postern_readonly'
