import { sql } from 'kysely'
import pg from 'pg'
import { compareMigrations, minServerVersion } from '../platform/db/migrate.ts'
import { dbRoles, ownerRole, roleName } from '../platform/db/roles.ts'
import { type Check, type DoctorContext, failure, ok, unlessFound, warning } from './check.ts'
import { shownUrl } from './context.ts'
import { findLogin, findRoles, findServer, type Server } from './database.sql.ts'

/** Checks what docs/operations/database.md requires of PostgreSQL. */
export const databaseChecks: Check[] = [
  {
    name: 'database',
    run: async ({ missing, settings }) => [
      missing.login ?? ok(`The database responds at ${shownUrl(settings.databaseUrl)}.`),
    ],
  },
  {
    name: 'database.version',
    needs: 'login',
    async run({ login }) {
      const { version, version_number } = await findServer(login)
      if (version_number >= minServerVersion) return [ok(`The server runs PostgreSQL ${version}.`)]
      return [
        failure(
          `The server runs PostgreSQL ${version}, which is too old.`,
          'Upgrade the server to PostgreSQL 15 or newer.',
        ),
      ]
    },
  },
  {
    name: 'database.durability',
    needs: 'login',
    run: async ({ login }) => durability(await findServer(login)),
  },
  {
    name: 'database.connections',
    needs: 'login',
    run: async ({ login, settings }) => connections(await findServer(login), settings.databasePoolSize),
  },
  { name: 'database.text', needs: 'login', run: async ({ login }) => text(await findServer(login)) },
  {
    name: 'database.vacuum',
    needs: 'login',
    async run({ login }) {
      const { autovacuum, track_counts } = await findServer(login)
      if (autovacuum === 'on' && track_counts === 'on') return [ok('Autovacuum is on.')]
      return [
        warning(
          'Autovacuum is off: the queue tables grow without limit, and sending slows down.',
          'Set autovacuum = on and track_counts = on in postgresql.conf, and reload PostgreSQL.',
        ),
      ]
    },
  },
  {
    name: 'database.recovery',
    needs: 'login',
    async run({ login }) {
      const { wal_level } = await findServer(login)
      if (wal_level !== 'minimal')
        return [ok(`wal_level is ${wal_level}: replication and point-in-time recovery are possible.`)]
      return [
        warning(
          'wal_level is minimal: neither a standby nor point-in-time recovery is possible.',
          'Set wal_level = replica in postgresql.conf, and restart PostgreSQL.',
        ),
      ]
    },
  },
  {
    name: 'database.network',
    needs: 'login',
    async run({ login, settings }) {
      const { is_local, is_encrypted } = await findServer(login)
      if (is_local) return [ok('The database is on this machine.')]
      if (is_encrypted) return [ok('The connection to the database is encrypted.')]
      return [
        warning(
          `The connection to ${shownUrl(settings.databaseUrl)} is not encrypted: anyone on the network path can read it.`,
          'Set ssl = on in postgresql.conf, and add ?sslmode=verify-full to POSTERN_DATABASE_URL.',
        ),
      ]
    },
  },
  { name: 'database.login', needs: 'login', run: loginFindings },
  { name: 'database.roles', needs: 'login', run: ({ login }) => roles(login) },
  {
    name: 'database.migrations',
    needs: 'login',
    async run({ db, missing }) {
      if (missing.tables) return [missing.tables]
      const { pending, unknown } = await db.readOne(compareMigrations)
      return unlessFound(
        [
          pending.length === 0
            ? undefined
            : failure(
                `The database is missing ${count(pending, 'migration')}: ${pending.join(', ')}.`,
                'Run `postern migrate`.',
              ),
          unknown.length === 0
            ? undefined
            : warning(
                `The database has ${count(unknown, 'migration')} that this program does not know: ${unknown.join(', ')}.`,
                'A newer version of Postern migrated the database: upgrade this installation as well.',
              ),
        ],
        'The database has exactly the migrations of this program.',
      )
    },
  },
  {
    name: 'clock',
    needs: 'tables',
    async run({ db }) {
      const before = Date.now()
      const { rows } = await db.readOne((tx) => sql<{ now: Date }>`select postern.now() as now`.execute(tx))
      const passed = (Date.now() - before) / 2
      return [clock(Math.abs((rows[0]?.now.getTime() ?? 0) - before - passed))]
    },
  },
]

const count = ({ length }: readonly unknown[], what: string): string =>
  length === 1 ? `one ${what}` : `${length} ${what}s`

function durability({ fsync, full_page_writes, synchronous_commit }: Server) {
  const off = Object.entries({ fsync, full_page_writes, synchronous_commit })
    .filter(([, value]) => value === 'off')
    .map(([name]) =>
      failure(
        `${name} is off: mail that was accepted can be lost in a crash or a power failure.`,
        `Set ${name} = on in postgresql.conf, reload PostgreSQL, and check that neither the role nor the database overrides it.`,
      ),
    )
  return unlessFound(off, 'Commits are durable: fsync, full_page_writes and synchronous_commit are on.')
}

/** `postern all` has a pool for each role; as separate processes, api has four, worker and intake two each. */
const rolesTogether = dbRoles.length
const rolesApart = 8

function connections({ connections, login_connections, database_connections }: Server, poolSize: number) {
  const limits = [connections, login_connections, database_connections].filter((limit) => limit >= 0)
  const room = Math.min(...limits)
  const sum = `POSTERN_DATABASE_POOL_SIZE is ${poolSize}, and the server allows ${room} connections`
  const remedy =
    'Raise max_connections (and the connection limit of the login or the database, if there is one), or lower ' +
    'POSTERN_DATABASE_POOL_SIZE.'
  if (room < poolSize * rolesTogether) {
    return [failure(`${sum}: one process can open ${poolSize * rolesTogether}.`, remedy)]
  }
  if (room < poolSize * rolesApart) {
    return [warning(`${sum}: api, worker and intake together can open ${poolSize * rolesApart}.`, remedy)]
  }
  return [
    ok(
      `The server allows ${room} connections; api, worker and intake open at most ${poolSize * rolesApart}.`,
    ),
  ]
}

function text({ encoding, ctype }: Server) {
  if (encoding !== 'UTF8') {
    return [
      failure(
        `The database encoding is ${encoding}.`,
        'Recreate it: createdb --encoding UTF8 --template template0, then `postern migrate`.',
      ),
    ]
  }
  if (ctype === 'C' || ctype === 'POSIX') {
    return [
      warning(
        `The database locale is ${ctype}, which supports ASCII letters only: searches for other letters are slow.`,
        'When the database is next created, use a locale such as C.UTF-8.',
      ),
    ]
  }
  return [ok(`The database has encoding UTF8 and locale ${ctype}.`)]
}

async function loginFindings({ login, settings }: DoctorContext) {
  const { name, is_superuser, bypasses_rls, inherits, may_own, owned } = await findLogin(login, ownerRole)
  const quoted = pg.escapeIdentifier(name)
  const strict = 'See "Two logins" in docs/operations/database.md.'
  if (is_superuser) {
    return [
      failure(
        `The application logs in as ${name}, a superuser, which database permissions do not restrict: it can rewrite the audit log.`,
        `Create a separate login. ${strict}`,
      ),
    ]
  }
  return unlessFound(
    [
      bypasses_rls
        ? failure(
            `The login ${name} bypasses row-level security.`,
            `As a superuser, run: alter role ${quoted} nobypassrls`,
          )
        : undefined,
      inherits
        ? warning(
            `The login ${name} inherits the privileges of all its roles.`,
            `As a superuser, run: alter role ${quoted} noinherit`,
          )
        : undefined,
      may_own
        ? failure(
            `The login ${name} is a member of ${ownerRole}, which row-level security does not restrict and which can rewrite the audit log.`,
            `Migrate with another login (POSTERN_DATABASE_OWNER_URL). ${strict}`,
          )
        : undefined,
      owned > 0
        ? failure(
            `The login ${name} owns ${owned} Postern tables: it can change and delete audit entries.`,
            `As a superuser, run: reassign owned by ${quoted} to ${ownerRole}`,
          )
        : undefined,
      settings.databaseOwnerUrl !== settings.databaseUrl
        ? warning(
            'POSTERN_DATABASE_OWNER_URL is in these settings: a serving process can log in as the owner of the tables.',
            `Set it for \`postern migrate\` only. ${strict}`,
          )
        : undefined,
    ],
    `The login ${name} has no privileges other than those of the plane roles.`,
  )
}

async function roles(login: Parameters<typeof findRoles>[0]) {
  const planes = await findRoles(login, dbRoles.map(roleName))
  const { name } = await findLogin(login, ownerRole)
  const absent = planes.filter((role) => !role.exists).map((role) => role.name)
  const notMember = planes.filter((role) => role.exists && !role.is_member).map((role) => role.name)
  const privileged = planes.filter((role) => role.is_privileged).map((role) => role.name)
  return unlessFound(
    [
      absent.length > 0
        ? failure(
            `Database roles are missing: ${absent.join(', ')}.`,
            'Run `postern migrate`, or run server/roles.sql as a superuser.',
          )
        : undefined,
      notMember.length > 0
        ? failure(
            `The login ${name} is not a member of every role it needs: ${notMember.join(', ')}.`,
            `As a superuser, run: grant ${notMember.join(', ')} to ${pg.escapeIdentifier(name)}`,
          )
        : undefined,
      privileged.length > 0
        ? failure(
            `A plane role can log in, is a superuser, or bypasses row-level security: ${privileged.join(', ')}.`,
            `As a superuser, run for each: alter role ${privileged[0]} nologin nosuperuser nobypassrls`,
          )
        : undefined,
    ],
    'The plane roles exist, and the login is a member of each.',
  )
}

// Access tokens are valid for ten minutes according to this machine's clock; leases use the database's clock.
const clockWarningMs = 2_000
const clockFailureMs = 30_000

function clock(apartMs: number) {
  const seconds = Math.round(apartMs / 1000)
  const finding = `The clocks of this machine and the database are ${seconds} seconds apart.`
  const remedy =
    'Synchronize both with NTP (chrony or systemd-timesyncd), and check that postern.clock_offset is not set for the database.'
  if (apartMs > clockFailureMs) return failure(finding, remedy)
  if (apartMs > clockWarningMs) return warning(finding, remedy)
  return ok('The clocks of this machine and the database are synchronized.')
}
