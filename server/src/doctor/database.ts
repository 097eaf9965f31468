import { sql } from 'kysely'
import pg from 'pg'
import { compareMigrations, minServerVersion } from '../platform/db/migrate.ts'
import { dbRoles, ownerRole, roleName } from '../platform/db/roles.ts'
import { type Check, type DoctorContext, failure, ok, unlessFound, warning } from './check.ts'
import { placeOf } from './context.ts'
import { findLogin, findRoles, findServer, type Server } from './database.sql.ts'

/** What stands in docs/operations/database.md, looked at. */
export const databaseChecks: Check[] = [
  {
    name: 'database',
    look: async ({ missing, settings }) => [
      missing.login ?? ok(`The database answers at ${placeOf(settings.databaseUrl)}.`),
    ],
  },
  {
    name: 'database.version',
    needs: 'login',
    async look({ login }) {
      const { version, version_number } = await findServer(login)
      if (version_number >= minServerVersion) return [ok(`It is PostgreSQL ${version}.`)]
      return [failure(`It is PostgreSQL ${version}.`, 'Upgrade the server to PostgreSQL 15 or newer.')]
    },
  },
  {
    name: 'database.durability',
    needs: 'login',
    look: async ({ login }) => durability(await findServer(login)),
  },
  {
    name: 'database.connections',
    needs: 'login',
    look: async ({ login, settings }) => connections(await findServer(login), settings.databasePoolSize),
  },
  { name: 'database.text', needs: 'login', look: async ({ login }) => text(await findServer(login)) },
  {
    name: 'database.vacuum',
    needs: 'login',
    async look({ login }) {
      const { autovacuum, track_counts } = await findServer(login)
      if (autovacuum === 'on' && track_counts === 'on') return [ok('Autovacuum is on.')]
      return [
        warning(
          'Autovacuum is off: the tables of the queue grow without end, and claims become slow.',
          'Set autovacuum = on and track_counts = on in postgresql.conf, and reload PostgreSQL.',
        ),
      ]
    },
  },
  {
    name: 'database.recovery',
    needs: 'login',
    async look({ login }) {
      const { wal_level } = await findServer(login)
      if (wal_level !== 'minimal') return [ok(`wal_level is ${wal_level}: standbys and archives can be fed.`)]
      return [
        warning(
          'wal_level is minimal: no standby, and no restore to a point in time, is possible.',
          'Set wal_level = replica in postgresql.conf, and restart PostgreSQL.',
        ),
      ]
    },
  },
  {
    name: 'database.network',
    needs: 'login',
    async look({ login, settings }) {
      const { is_near, is_encrypted } = await findServer(login)
      if (is_near) return [ok('The database is on this machine.')]
      if (is_encrypted) return [ok('The connection to the database is encrypted.')]
      return [
        warning(
          `The connection to ${placeOf(settings.databaseUrl)} is not encrypted: whoever is between reads all of it.`,
          'Set ssl = on in postgresql.conf, and add ?sslmode=verify-full to POSTERN_DATABASE_URL.',
        ),
      ]
    },
  },
  { name: 'database.login', needs: 'login', look: loginFindings },
  { name: 'database.roles', needs: 'login', look: ({ login }) => roles(login) },
  {
    name: 'database.migrations',
    needs: 'login',
    async look({ db, missing }) {
      if (missing.tables) return [missing.tables]
      const { pending, unknown } = await db.readOne(compareMigrations)
      return unlessFound(
        [
          pending.length === 0
            ? undefined
            : failure(
                `The database lacks ${count(pending, 'migration')}: ${pending.join(', ')}.`,
                'Run `postern migrate`.',
              ),
          unknown.length === 0
            ? undefined
            : warning(
                `The database has ${count(unknown, 'migration')} that this program does not know: ${unknown.join(', ')}.`,
                'A newer Postern has migrated it: upgrade this one, too.',
              ),
        ],
        'The database has every migration of this program, and no other.',
      )
    },
  },
  {
    name: 'clock',
    needs: 'tables',
    async look({ db }) {
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
        `${name} is off: mail that was accepted may be gone after a crash or a power cut.`,
        `Set ${name} = on in postgresql.conf, reload PostgreSQL, and look whether the role or the database has it set.`,
      ),
    )
  return unlessFound(
    off,
    'What is committed is on disk: fsync, full_page_writes and synchronous_commit are on.',
  )
}

/** `postern all` has a pool for each role; as processes of their own, api has four, worker and intake two each. */
const rolesTogether = dbRoles.length
const rolesApart = 8

function connections({ connections, login_connections, database_connections }: Server, poolSize: number) {
  const limits = [connections, login_connections, database_connections].filter((limit) => limit >= 0)
  const room = Math.min(...limits)
  const sum = `POSTERN_DATABASE_POOL_SIZE is ${poolSize}, and there is room for ${room} connections`
  const remedy =
    'Raise max_connections (and the connection limit of the login or the database, if there is one), or lower ' +
    'POSTERN_DATABASE_POOL_SIZE.'
  if (room < poolSize * rolesTogether) {
    return [failure(`${sum}: one process may open ${poolSize * rolesTogether}.`, remedy)]
  }
  if (room < poolSize * rolesApart) {
    return [warning(`${sum}: api, worker and intake together may open ${poolSize * rolesApart}.`, remedy)]
  }
  return [
    ok(
      `There is room for ${room} connections; api, worker and intake open ${poolSize * rolesApart} at most.`,
    ),
  ]
}

function text({ encoding, letters }: Server) {
  if (encoding !== 'UTF8') {
    return [
      failure(
        `The encoding of the database is ${encoding}.`,
        'Make it anew: createdb --encoding UTF8 --template template0, then `postern migrate`.',
      ),
    ]
  }
  if (letters === 'C' || letters === 'POSIX') {
    return [
      warning(
        `The locale of the database is ${letters}, which knows no letters but those of ASCII: searches for others are slow.`,
        'Make it with a locale such as C.UTF-8 when it is made next.',
      ),
    ]
  }
  return [ok(`The database is in UTF8, with the letters of ${letters}.`)]
}

async function loginFindings({ login, settings }: DoctorContext) {
  const { name, is_superuser, bypasses_rls, inherits, may_own, owned } = await findLogin(login, ownerRole)
  const quoted = pg.escapeIdentifier(name)
  const strict = 'docs/operations/database.md tells how, under "The strict way".'
  if (is_superuser) {
    return [
      failure(
        `The application logs in as ${name}, a superuser, which can do everything in the database and rewrite the audit.`,
        `Make a login of its own. ${strict}`,
      ),
    ]
  }
  return unlessFound(
    [
      bypasses_rls
        ? failure(
            `The login ${name} bypasses row-level security.`,
            `A superuser runs: alter role ${quoted} nobypassrls`,
          )
        : undefined,
      inherits
        ? warning(
            `The login ${name} has the rights of all its roles at once, whenever it acts as none.`,
            `A superuser runs: alter role ${quoted} noinherit`,
          )
        : undefined,
      may_own
        ? failure(
            `The login ${name} may become ${ownerRole}, to which row-level security does not apply, and which can rewrite the audit.`,
            `Migrate with another login (POSTERN_DATABASE_OWNER_URL). ${strict}`,
          )
        : undefined,
      owned > 0
        ? failure(
            `The login ${name} owns ${owned} tables of Postern: it can change and delete rows of the audit.`,
            `A superuser runs: reassign owned by ${quoted} to ${ownerRole}`,
          )
        : undefined,
      settings.databaseOwnerUrl !== settings.databaseUrl
        ? warning(
            'POSTERN_DATABASE_OWNER_URL is in these settings: a process that serves can log in as the owner of the tables.',
            `Give it to \`postern migrate\` alone. ${strict}`,
          )
        : undefined,
    ],
    `The login ${name} can do nothing but act for the planes.`,
  )
}

async function roles(login: Parameters<typeof findRoles>[0]) {
  const planes = await findRoles(login, dbRoles.map(roleName))
  const { name } = await findLogin(login, ownerRole)
  const absent = planes.filter((role) => !role.exists).map((role) => role.name)
  const foreign = planes.filter((role) => role.exists && !role.is_ours).map((role) => role.name)
  const mighty = planes.filter((role) => role.is_mighty).map((role) => role.name)
  return unlessFound(
    [
      absent.length > 0
        ? failure(
            `The database roles are not all there: ${absent.join(', ')}.`,
            'Run `postern migrate`, or have a superuser run server/roles.sql.',
          )
        : undefined,
      foreign.length > 0
        ? failure(
            `The login ${name} may not act for every plane: ${foreign.join(', ')}.`,
            `A superuser runs: grant ${foreign.join(', ')} to ${pg.escapeIdentifier(name)}`,
          )
        : undefined,
      mighty.length > 0
        ? failure(
            `A plane's role logs in, is a superuser, or bypasses row-level security: ${mighty.join(', ')}.`,
            `A superuser runs, for each: alter role ${mighty[0]} nologin nosuperuser nobypassrls`,
          )
        : undefined,
    ],
    'The roles of the planes are there, and the login may act for each.',
  )
}

// Access tokens live for ten minutes and are dated by the machine; leases are dated by the database.
const clockWarningMs = 2_000
const clockFailureMs = 30_000

function clock(apartMs: number) {
  const seconds = Math.round(apartMs / 1000)
  const finding = `The clocks of this machine and of the database are ${seconds} seconds apart.`
  const remedy =
    'Keep both by NTP (chrony or systemd-timesyncd), and look that the database has no postern.clock_offset set.'
  if (apartMs > clockFailureMs) return failure(finding, remedy)
  if (apartMs > clockWarningMs) return warning(finding, remedy)
  return ok('The clock of this machine agrees with that of the database.')
}
