import type { Login } from './check.ts'

/** The PostgreSQL settings, as seen by a session of the application's login. */
export interface Server {
  version: string
  version_number: number
  fsync: string
  full_page_writes: string
  synchronous_commit: string
  autovacuum: string
  track_counts: string
  wal_level: string
  encoding: string
  ctype: string
  /** The number of connections available to logins that are not superusers. */
  connections: number
  /** -1: no limit. */
  login_connections: number
  database_connections: number
  /** Whether the connection uses a Unix socket or a loopback address. */
  is_local: boolean
  is_encrypted: boolean
}

export async function findServer({ query }: Login): Promise<Server> {
  const rows = await query<Server>(`
    select current_setting('server_version') as version,
           current_setting('server_version_num')::int as version_number,
           current_setting('fsync') as fsync,
           current_setting('full_page_writes') as full_page_writes,
           current_setting('synchronous_commit') as synchronous_commit,
           current_setting('autovacuum') as autovacuum,
           current_setting('track_counts') as track_counts,
           current_setting('wal_level') as wal_level,
           pg_encoding_to_char(encoding) as encoding,
           datctype as ctype,
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
             as connections,
           (select rolconnlimit from pg_roles where rolname = session_user) as login_connections,
           datconnlimit as database_connections,
           coalesce(inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1', true) as is_local,
           coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as is_encrypted
      from pg_database where datname = current_database()`)
  return theOne(rows)
}

export interface LoginFacts {
  name: string
  is_superuser: boolean
  bypasses_rls: boolean
  inherits: boolean
  may_own: boolean
  /** The number of Postern tables that the login owns. */
  owned: number
}

export async function findLogin({ query }: Login, owner: string): Promise<LoginFacts> {
  const rows = await query<LoginFacts>(
    `select rolname as name, rolsuper as is_superuser, rolbypassrls as bypasses_rls, rolinherit as inherits,
            coalesce((select pg_has_role(session_user, oid, 'member') from pg_roles where rolname = $1), false) as may_own,
            (select count(*)::int from pg_class join pg_namespace on pg_namespace.oid = relnamespace
              where relowner = pg_roles.oid and relkind in ('r', 'p') and nspname in ('control', 'mail', 'postern'))
              as owned
       from pg_roles where rolname = session_user`,
    [owner],
  )
  return theOne(rows)
}

export interface RoleFacts {
  name: string
  exists: boolean
  /** Whether the login is a member of the role. */
  is_member: boolean
  /** Whether the role can log in, is a superuser, or bypasses row-level security. */
  is_privileged: boolean
}

export const findRoles = ({ query }: Login, names: readonly string[]): Promise<RoleFacts[]> =>
  query<RoleFacts>(
    `select wanted.name, roles.oid is not null as exists,
            coalesce(pg_has_role(session_user, roles.oid, 'member'), false) as is_member,
            coalesce(rolcanlogin or rolsuper or rolbypassrls, false) as is_privileged
       from unnest($1::text[]) as wanted (name) left join pg_roles as roles on roles.rolname = wanted.name`,
    [names],
  )

function theOne<Row>([row]: Row[]): Row {
  if (row === undefined) throw new Error('the PostgreSQL catalog query returned no row')
  return row
}
