/**
 * The application's database roles. server/roles.sql defines their privileges.
 *
 * A connection sets its role in the startup packet (`role` is an ordinary setting). It never has more privileges than
 * its plane, and nothing has to be reset when it returns to the pool.
 */
export type DbRole = 'admin' | 'customer' | 'mail' | 'identity'

export const dbRoles: readonly DbRole[] = ['admin', 'customer', 'mail', 'identity']

export const roleName = <Role extends DbRole | 'readonly'>(role: Role): `postern_${Role}` => `postern_${role}`

export const ownerRole = 'postern_owner'

/** For human users, dashboards and `postern signer`, which has its own login. */
export const readonlyRole = 'postern_readonly'
