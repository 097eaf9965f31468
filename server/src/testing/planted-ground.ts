import { loadConfig } from '../config.ts'
import { createContext } from '../context.ts'
import { createAdministrator } from '../core/access/enrol.ts'
import { createLogger } from '../platform/log.ts'
import { makeCertificate } from './certificate.ts'
import type { startInstallation } from './installation.ts'
import type { Planted } from './planted.ts'

type Installation = Awaited<ReturnType<typeof startInstallation>>

/** In the database, its keys, the front end, ports and certificates. */
export function plantedInGround({ env, query, urlOf, postfix, strangerUrl }: Installation): Planted[] {
  const twin = { POSTERN_DATABASE_URL: urlOf('twin') }
  const setting = (name: string): Pick<Planted, 'plant' | 'undo'> => {
    const seen = async (value: string) => {
      while ((await query('postgres', `select where current_setting('${name}') = '${value}'`)).length === 0);
    }
    return {
      async plant() {
        await query('postgres', `alter system set ${name} = off`)
        await query('postgres', 'select pg_reload_conf()')
        await seen('off')
      },
      async undo() {
        await query('postgres', `alter system reset ${name}`)
        await query('postgres', 'select pg_reload_conf()')
        await seen('on')
      },
    }
  }
  const inTwin =
    (text: string, values: unknown[] = []) =>
    () =>
      query('twin', text, values)
  const login = (name: string, attributes: string): Pick<Planted, 'plant' | 'env'> => ({
    plant: () => query('postgres', `create role ${name} login ${attributes}`),
    env: { POSTERN_DATABASE_URL: urlOf('main', name) },
  })
  const planes = 'postern_admin, postern_customer, postern_mail, postern_identity'
  const certificate = (...options: Parameters<typeof makeCertificate>) => {
    const { files } = makeCertificate(...options)
    return { POSTERN_INTAKE_TLS_CERTIFICATE: files.certificate, POSTERN_INTAKE_TLS_KEY: files.key }
  }
  const names = ['localhost', 'mx.postern.test', 'bounces.postern.test']

  /** An administrator, their signing key and a project of the twin's own. */
  async function signingKeyInTwin(): Promise<void> {
    const context = createContext(loadConfig({ ...env, ...twin }), createLogger('silent'), 'postern test')
    const { auth, db, signIn } = context
    await createAdministrator(
      { auth, adminDb: db.admin, identityDb: db.identity, reason: '' },
      'bo@example.com',
      'Bo',
    )
    await signIn.shellToken('bo@example.com')
    await query(
      'twin',
      `with plan as (insert into control.plans (name, description, support_level, max_domains, max_users,
                                                max_mails_per_day, max_mails_per_month, price)
                     values ('Plan', '', 'email', 1, 1, 1, 1, 0) returning id)
       insert into control.projects (user_id, name, plan_id) select users.id, 'Twin', plan.id from control.users, plan`,
    )
    await context.close()
  }

  return [
    {
      what: 'a closed port',
      check: 'database',
      env: { POSTERN_DATABASE_URL: 'postgres://postern_app:swordfish@127.0.0.1:1/main' },
      level: 'failure',
      finding: /The database at postgres:\/\/postern_app@127\.0\.0\.1:1\/main cannot be used: .*ECONNREFUSED/,
      remedy: /Is PostgreSQL running/,
    },
    {
      what: 'a database that is not there',
      check: 'database',
      env: { POSTERN_DATABASE_URL: urlOf('nowhere') },
      level: 'failure',
      finding: /database "nowhere" does not exist/,
      remedy: /Create it first/,
    },
    ...['fsync', 'full_page_writes', 'synchronous_commit'].map(
      (name): Planted => ({
        what: `${name} off`,
        check: 'database.durability',
        ...setting(name),
        level: 'failure',
        finding: new RegExp(`^${name} is off: mail that was accepted may be gone`),
        remedy: new RegExp(`Set ${name} = on`),
      }),
    ),
    {
      what: 'autovacuum off',
      check: 'database.vacuum',
      ...setting('autovacuum'),
      level: 'warning',
      finding: /^Autovacuum is off/,
      remedy: /autovacuum = on/,
    },
    {
      what: 'pools larger than the server',
      check: 'database.connections',
      env: { POSTERN_DATABASE_POOL_SIZE: '100' },
      level: 'failure',
      finding: /is 100, and there is room for 297 connections: one process may open 400/,
      remedy: /Raise max_connections/,
    },
    {
      what: 'a login with a limit of its own',
      check: 'database.connections',
      ...login('narrow', `noinherit connection limit 50 in role ${planes}`),
      level: 'warning',
      finding: /room for 50 connections: api, worker and intake together may open 80/,
      remedy: /the connection limit of the login/,
    },
    {
      what: 'another encoding',
      check: 'database.text',
      plant: () =>
        query(
          'postgres',
          `create database ascii encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0`,
        ),
      env: { POSTERN_DATABASE_URL: urlOf('ascii') },
      level: 'failure',
      finding: /encoding of the database is SQL_ASCII/,
      remedy: /createdb --encoding UTF8/,
    },
    {
      what: 'no migration at all',
      check: 'database.migrations',
      env: { POSTERN_DATABASE_URL: urlOf('ascii') },
      level: 'failure',
      finding: /The tables cannot be read: .*postern/,
      remedy: /postern migrate/,
    },
    {
      what: 'a superuser as the login',
      check: 'database.login',
      env: { POSTERN_DATABASE_URL: urlOf('main', 'postgres') },
      level: 'failure',
      finding: /logs in as postgres, a superuser/,
      remedy: /Make a login of its own/,
    },
    {
      what: 'a login that owns a table',
      check: 'database.login',
      plant: async () => {
        await query('postgres', `create role squire login noinherit in role ${planes}`)
        await query('twin', 'create table control.held (); alter table control.held owner to squire')
      },
      undo: inTwin('drop table control.held'),
      env: { POSTERN_DATABASE_URL: urlOf('twin', 'squire') },
      level: 'failure',
      finding: /The login squire owns 1 tables of Postern/,
      remedy: /reassign owned by "squire" to postern_owner/,
    },
    {
      what: "the owner's login in settings of processes that serve",
      check: 'database.login',
      env: { POSTERN_DATABASE_OWNER_URL: urlOf('main', 'postgres') },
      level: 'warning',
      finding: /POSTERN_DATABASE_OWNER_URL is in these settings/,
      remedy: /Give it to `postern migrate` alone/,
    },
    {
      what: 'a login that inherits',
      check: 'database.login',
      ...login('heir', `inherit in role ${planes}`),
      level: 'warning',
      finding: /The login heir has the rights of all its roles at once/,
      remedy: /alter role "heir" noinherit/,
    },
    {
      what: 'a login that owns',
      check: 'database.login',
      ...login('lord', `noinherit in role postern_owner, ${planes}`),
      level: 'failure',
      finding: /The login lord may become postern_owner/,
      remedy: /POSTERN_DATABASE_OWNER_URL/,
    },
    {
      what: 'a login that may not act for a plane',
      check: 'database.roles',
      ...login('lame', 'noinherit in role postern_admin, postern_customer, postern_identity'),
      level: 'failure',
      finding: /The login lame may not act for every plane: postern_mail/,
      remedy: /grant postern_mail to "lame"/,
    },
    {
      what: 'a missing migration',
      check: 'database.migrations',
      env: twin,
      plant: inTwin(`update postern.migrations set name = '999999_of_tomorrow' where name like '000015%'`),
      level: 'failure',
      finding: /lacks one migration: 000015_search/,
      remedy: /Run `postern migrate`/,
    },
    {
      what: 'a migration of a newer program',
      check: 'database.migrations',
      env: twin,
      level: 'warning',
      finding: /one migration that this program does not know: 999999_of_tomorrow/,
      remedy: /upgrade this one, too/,
      undo: inTwin(`update postern.migrations set name = '000015_search' where name like '999999%'`),
    },
    {
      what: 'a clock that is ten minutes late',
      check: 'clock',
      env: twin,
      plant: () => query('postgres', `alter database twin set postern.clock_offset = '-10 minutes'`),
      undo: () => query('postgres', 'alter database twin reset postern.clock_offset'),
      level: 'failure',
      finding: /are (599|600|601) seconds apart/,
      remedy: /NTP/,
    },
    {
      what: 'a master key that is missing',
      check: 'keys.master',
      env: { POSTERN_MASTER_KEYS: `2:${'6b'.repeat(32)}` },
      level: 'failure',
      finding: /The master key "1" wraps the keys of \d+ projects, and is not in POSTERN_MASTER_KEYS/,
      remedy: /Put it back/,
    },
    {
      what: 'another master key under the same name',
      check: 'keys.master',
      env: { POSTERN_MASTER_KEYS: `1:${'6b'.repeat(32)}` },
      level: 'failure',
      finding: /The master key listed as "1" does not open/,
      remedy: /give the new one another name/,
    },
    {
      what: 'another auth secret',
      check: 'keys.sign-in',
      env: { POSTERN_AUTH_SECRETS: `1:${'another-secret-of-the-test-'.repeat(2)}` },
      level: 'failure',
      finding: /made with a secret that is not in POSTERN_AUTH_SECRETS/,
      remedy: /Put the secret back/,
    },
    {
      what: 'nobody at the public address',
      check: 'public-url',
      env: { POSTERN_PUBLIC_URL: 'http://localhost:1' },
      level: 'failure',
      finding: /Nobody answers at http:\/\/localhost:1: /,
      remedy: /Start `postern api`/,
    },
    {
      what: 'somebody else at the public address',
      check: 'public-url',
      env: { POSTERN_PUBLIC_URL: strangerUrl },
      level: 'failure',
      finding: /somebody else answers/,
      remedy: /Let the front end pass every path on/,
    },
    {
      what: 'another Postern at the public address',
      check: 'public-url',
      env: twin,
      plant: signingKeyInTwin,
      level: 'failure',
      finding: /another Postern answers/,
      remedy: /POSTERN_DATABASE_URL/,
    },
    {
      what: 'everybody as a trusted proxy',
      check: 'public-url.proxies',
      env: { POSTERN_TRUSTED_PROXIES: '10.0.0.1, 0.0.0.0/0' },
      level: 'failure',
      finding: /believes everybody \(0\.0\.0\.0\/0\)/,
      remedy: /your own front ends alone/,
    },
    {
      what: 'a front end that is not trusted',
      check: 'public-url.proxies',
      env: { POSTERN_PUBLIC_URL: 'https://mail.postern.test' },
      level: 'warning',
      finding: /POSTERN_TRUSTED_PROXIES is empty/,
      remedy: /Set POSTERN_TRUSTED_PROXIES/,
    },
    {
      what: 'a port that somebody else has',
      check: 'ports',
      env: { POSTERN_HTTP_PORT: String(postfix.port) },
      level: 'failure',
      finding: /Somebody else listens at 127\.0\.0\.1:\d+, where POSTERN_HTTP_PORT/,
      remedy: /ss -ltnp/,
    },
    {
      what: 'an address of another machine',
      check: 'ports',
      env: { POSTERN_INTAKE_HOST: '192.0.2.1' },
      level: 'failure',
      finding: /192\.0\.2\.1 is not an address of this machine.*POSTERN_BOUNCE_PORT/,
      remedy: /POSTERN_INTAKE_HOST/,
    },
    {
      what: 'a certificate that has ended',
      check: 'certificate',
      env: certificate({ names, days: 30, madeOn: '2020-01-01' }),
      level: 'failure',
      finding: /ended on 2020-01-31/,
      remedy: /Renew it/,
    },
    {
      what: 'a certificate that is about to end',
      check: 'certificate',
      env: certificate({ names, days: 10 }),
      level: 'warning',
      finding: /The certificate in .* ends on /,
      remedy: /Renew it/,
    },
    {
      what: 'a certificate of another key',
      check: 'certificate',
      env: { POSTERN_INTAKE_TLS_KEY: certificate().POSTERN_INTAKE_TLS_KEY },
      level: 'failure',
      finding: /cannot be used: .*key values mismatch/,
      remedy: /the key that belongs to it/,
    },
    {
      what: 'a certificate for another name',
      check: 'certificate',
      env: certificate({ names: names.slice(1), days: 90 }),
      level: 'failure',
      finding: /not for localhost .*programs refuse to submit/,
      remedy: /that names it, too/,
    },
  ]
}
