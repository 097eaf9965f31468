import type { startInstallation } from './installation.ts'
import type { Planted } from './planted.ts'

type Installation = Awaited<ReturnType<typeof startInstallation>>

const noSigner = { POSTERN_AUDIT_SIGNER_SOCKET: '', POSTERN_AUDIT_PUBLIC_KEYS: '' }

/** In the DNS, the MTA, and the work that lies in rows. */
export function plantedInMail({ query, urlOf, doors, postfix, publish }: Installation): Planted[] {
  const twin = { POSTERN_DATABASE_URL: urlOf('twin') }
  const inTwin =
    (text: string, values: unknown[] = []) =>
    () =>
      query('twin', text, values)
  const mta = (port: number) => ({ POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${port}` })
  const returnPath = (host: string) => ({ POSTERN_RETURN_PATH_HOST: `${host}.postern.test` })
  /** Mail in the twin: 25 hours old. */
  const mail = (state: string) =>
    `insert into mail.dispatch (message_id, recipient_no, project_id, identity_id, provider, recipient, state, due_at, leased_until)
     select postern.uuid7(postern.now()), 0, id, 1, 'service', 'someone@example.net', '${state}',
            postern.now() - interval '25 hours',
            case '${state}' when 'leased' then postern.now() - interval '25 hours' end
       from control.projects order by id limit 1`

  return [
    {
      what: 'an MX host that is an alias',
      check: 'names.mx-host',
      env: { POSTERN_MX_HOST: 'alias.postern.test' },
      level: 'failure',
      finding: /alias\.postern\.test \(POSTERN_MX_HOST\) is an alias \(CNAME\) of mx\.postern\.test/,
      remedy: /A and AAAA records/,
    },
    {
      what: 'an MX host without an address',
      check: 'names.mx-host',
      env: { POSTERN_MX_HOST: 'nowhere.postern.test' },
      level: 'failure',
      finding: /has no address/,
      remedy: /Publish an A or AAAA record/,
    },
    {
      what: 'resolvers that are not there',
      check: 'names.mx-host',
      env: { POSTERN_DNS_SERVERS: '127.0.0.1:1' },
      level: 'failure',
      finding: /could not be looked up: no DNS server is listening/,
      remedy: /POSTERN_DNS_SERVERS/,
    },
    {
      what: 'a return path whose MX leads nowhere',
      check: 'names.return-path-host',
      env: returnPath('nowhere-to-go'),
      level: 'failure',
      finding: /nowhere\.postern\.test, the MX of .*, has no address/,
      remedy: /Publish an MX record/,
    },
    {
      what: 'a return path at whose MX nobody listens',
      check: 'names.return-path-host',
      env: returnPath('deaf'),
      level: 'warning',
      finding: /silent\.postern\.test, .*cannot be reached from here at port 25/,
      remedy: /`postern intake` runs/,
    },
    {
      what: 'a return path whose MX takes no reports for it',
      check: 'names.return-path-host',
      env: returnPath('another'),
      level: 'failure',
      finding: /takes no reports: it answers fbl@another\.postern\.test with "550/,
      remedy: /POSTERN_BOUNCE_PORT/,
    },
    {
      what: 'no SPF',
      check: 'senders',
      env: returnPath('deaf'),
      level: 'failure',
      finding: /has no SPF record/,
      remedy: /v=spf1 ip4:/,
    },
    {
      what: 'SPF twice',
      check: 'senders',
      env: returnPath('twice'),
      level: 'failure',
      finding: /has 2 SPF records/,
      remedy: /Make one of them/,
    },
    {
      what: 'an address without a name',
      check: 'senders',
      env: returnPath('nameless'),
      level: 'failure',
      finding: /198\.51\.100\.8, from which mail leaves, has no PTR record/,
      remedy: /set its PTR record/,
    },
    {
      what: 'an address whose name leads elsewhere',
      check: 'senders',
      env: returnPath('misnamed'),
      level: 'failure',
      finding: /198\.51\.100\.9, .* is called mta\.postern\.test, and that name does not lead back/,
      remedy: /A or AAAA record to 198\.51\.100\.9/,
    },
    {
      what: 'another DKIM key in the DNS of a domain',
      check: 'domains',
      plant: () =>
        publish((record) =>
          record.value.startsWith('v=DKIM1') ? { ...record, value: 'v=DKIM1; k=rsa; p=AAAA' } : record,
        ),
      undo: () => publish(),
      level: 'warning',
      finding: /will not be believed\. The TXT record .*_domainkey.* has another value/,
      remedy: /Have its owner publish the records/,
    },
    {
      what: 'a domain without its return path',
      check: 'domains',
      plant: () => publish((record) => ({ ...record, name: record.name.replace(/^bounces\./, 'gone.') })),
      undo: () => publish(),
      level: 'warning',
      finding: /The CNAME record bounces\..* is not there/,
      remedy: /Have its owner publish the records/,
    },
    {
      what: 'Amazon SES by half',
      check: 'sending',
      env: { POSTERN_SES_REGION: 'eu-west-1', POSTERN_SES_ACCOUNT_ID: '123456789012' },
      level: 'warning',
      finding: /Amazon SES is set up by half/,
      remedy: /POSTERN_SES_CONFIGURATION_SET/,
    },
    {
      what: 'no way out for mail',
      check: 'sending',
      env: { POSTERN_MTA_HOSTS: '' },
      level: 'failure',
      finding: /No mail can leave/,
      remedy: /POSTERN_MTA_HOSTS/,
    },
    {
      what: 'an MTA that is not there',
      check: 'mta',
      env: { POSTERN_MTA_HOSTS: `smtp://127.0.0.1:${postfix.port}, smtp://user:swordfish@127.0.0.1:1` },
      level: 'failure',
      finding: /The MTA at 127\.0\.0\.1:1 cannot be used: .*ECONNREFUSED/,
      remedy: /Look that it runs/,
    },
    {
      what: 'an MTA without DSN',
      check: 'mta',
      env: mta(doors.withoutDsn.port),
      level: 'failure',
      finding: /does not offer DSN/,
      remedy: /smtpd_discard_ehlo_keywords/,
    },
    {
      what: 'an MTA for small mail',
      check: 'mta',
      env: mta(doors.small.port),
      level: 'failure',
      finding: /takes mail up to 10240000 octets, and Postern accepts 26214400/,
      remedy: /message_size_limit/,
    },
    {
      what: 'an MTA of seven bits',
      check: 'mta',
      env: mta(doors.sevenBit.port),
      level: 'warning',
      finding: /does not offer 8BITMIME/,
      remedy: /8bitmime/,
    },
    {
      what: 'an MTA that does not relay',
      check: 'mta',
      env: mta(doors.closed.port),
      level: 'failure',
      finding: /does not take mail for postmaster@iana\.org: "554 /,
      remedy: /mynetworks/,
    },
    {
      what: 'no worker',
      check: 'worker',
      env: twin,
      level: 'failure',
      finding: /No worker has worked lately/,
      remedy: /Start `postern worker`/,
    },
    {
      what: 'an audit that nobody signs',
      check: 'audit.checkpoints',
      env: twin,
      plant: inTwin(
        `alter table control.audit disable trigger all; update control.audit set at = at - interval '1 hour'`,
      ),
      level: 'failure',
      finding: /have waited for a checkpoint for (60|61) minutes/,
      remedy: /postern audit checkpoint/,
    },
    {
      what: 'checkpoints that are in the database alone',
      check: 'audit.file',
      env: { POSTERN_AUDIT_CHECKPOINT_FILE: '' },
      level: 'failure',
      finding: /Checkpoints are in the database alone/,
      remedy: /the file of `postern signer`/,
    },
    {
      what: 'a file of the signer that cannot be read',
      check: 'audit.file',
      env: { POSTERN_AUDIT_CHECKPOINT_FILE: '/nowhere/checkpoints' },
      level: 'failure',
      finding: /cannot be read from \/nowhere\/checkpoints/,
      remedy: /in the group of `postern signer`/,
    },
    {
      what: 'the key of the checkpoints in the processes that it watches over',
      check: 'audit.signer',
      env: noSigner,
      level: 'warning',
      finding: /it is derived from a master key/,
      remedy: /Run `postern signer` as a user of its own/,
    },
    {
      what: 'the key of the signer in another process',
      check: 'audit.signer',
      env: { POSTERN_SIGNER_KEY: `signer-1:${'4b'.repeat(32)}` },
      level: 'failure',
      finding: /POSTERN_SIGNER_KEY is in the environment of this process/,
      remedy: /Remove the old one from these settings/,
    },
    {
      what: 'a signer that is not there',
      check: 'audit.signer',
      env: { POSTERN_AUDIT_SIGNER_SOCKET: '/nowhere/socket' },
      level: 'failure',
      finding: /cannot be signed: the signer at \/nowhere\/socket|cannot be signed: connect ENOENT/,
      remedy: /Start `postern signer`/,
    },
    {
      what: 'a signer with another key',
      check: 'audit.signer',
      env: { POSTERN_AUDIT_PUBLIC_KEYS: `signer-1:${'00'.repeat(32)}` },
      level: 'failure',
      finding: /has a key that is not in POSTERN_AUDIT_PUBLIC_KEYS/,
      remedy: /put it first: signer-1:/,
    },
    {
      what: 'a checkpoint file in no folder',
      check: 'audit.file',
      env: { ...noSigner, POSTERN_AUDIT_CHECKPOINT_FILE: '/nowhere/checkpoints' },
      level: 'failure',
      finding: /cannot be appended to \/nowhere\/checkpoints: ENOENT/,
      remedy: /Make its folder/,
    },
    {
      what: 'mail that nobody sends',
      check: 'queue',
      env: twin,
      plant: inTwin(mail('ready')),
      level: 'failure',
      finding: /Mail that could be sent has waited for 25 hours/,
      remedy: /postern queue look/,
    },
    {
      what: 'mail that is overdue',
      check: 'queue',
      env: twin,
      plant: inTwin(mail('deferred')),
      level: 'failure',
      finding: /Mail that was put off or scheduled has been due for 25 hours/,
      remedy: /Start `postern worker`/,
    },
    {
      what: 'mail that a dead worker has',
      check: 'queue',
      env: twin,
      plant: inTwin(mail('leased')),
      level: 'failure',
      finding: /a worker left behind when it died has waited for 25 hours/,
      remedy: /Start `postern worker`/,
    },
    {
      what: 'an endpoint that is not told',
      check: 'queue',
      env: twin,
      plant: inTwin(
        `insert into mail.endpoint_queues (endpoint_id, project_id, due_at) values (1, 1, postern.now() - interval '10 minutes')`,
      ),
      level: 'warning',
      finding: /An endpoint is due to be told something, and has waited for 10 minutes/,
      remedy: /Start `postern worker`/,
    },
    {
      what: 'an outbox that nobody reads',
      check: 'queue',
      env: twin,
      plant: inTwin(
        `insert into control.outbox (project_id, topic, payload, created_at) values (1, 'event', '{}', postern.now() - interval '3 hours')`,
      ),
      level: 'failure',
      finding: /\(control\.outbox\) has waited for 3 hours/,
      remedy: /names the row/,
    },
    {
      what: 'no room for tomorrow',
      check: 'queue.partitions',
      env: twin,
      plant: inTwin(`do $$ begin
        execute format('drop table mail.%I', 'events' || to_char((postern.now() at time zone 'UTC')::date + 1, '_YYYYMMDD'));
      end $$`),
      level: 'failure',
      finding: /no room for tomorrow/,
      remedy: /makes them every hour/,
    },
    {
      what: 'a project that is held',
      check: 'queue.holds',
      env: twin,
      plant: inTwin(
        'insert into control.queue_holds (project_id) select id from control.projects order by id limit 1',
      ),
      level: 'warning',
      finding: /The mail of one project is held/,
      remedy: /postern queue release/,
    },
    {
      what: 'a brake of the operator',
      check: 'queue.holds',
      env: twin,
      plant: inTwin(`insert into control.dispatch_holds (scope) values ('all')`),
      level: 'warning',
      finding: /All mail is held since/,
      remedy: /postern queue release/,
    },
  ]
}
