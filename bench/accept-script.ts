import { type PgbenchScript, pgbenchScript } from './pgbench-script.ts'
import type { Postern } from './postern.ts'
import type { Sender } from './senders.ts'
import { captureStatements, type Statement } from './statements.ts'

/**
 * A pgbench script that writes the rows of several messages in one transaction, as the API does: it locks and
 * increments the quota rows, and inserts messages, recipients, bodies, dispatch rows and events. The API's reads (the
 * key, the sender's permission to send, and suppressions) are omitted.
 */
export async function captureAcceptance(
  postern: Postern,
  senders: Sender[],
  sampleMessage: object,
  mails: number,
): Promise<PgbenchScript> {
  const captures: Statement[][] = []
  const sent: Record<'project' | 'identity' | 'key' | 'ids' | 'to' | 'from', string>[] = []
  const [first, second = first] = senders
  if (!first || !second) throw new Error('there are no senders')
  // Not captured: one-time statements, such as the creation of quota rows.
  await send(postern, first, sampleMessage, ['first@example.net'])
  await send(postern, second, sampleMessage, ['first@example.net'])
  for (const [capture, sender] of [first, first, second].entries()) {
    const recipients = Array.from({ length: mails }, (_, place) => `ada${capture}-${place}@example.net`)
    let ids: string[] = []
    const statements = await captureStatements(postern, async () => {
      ids = await send(postern, sender, sampleMessage, recipients)
    })
    captures.push(statements.filter(isWriting))
    const { projectId, identityId, apiKeyId, domain } = sender
    sent.push({
      project: listOf(mails, projectId),
      identity: listOf(mails, identityId),
      key: listOf(mails, apiKeyId),
      ids: `{${ids.join(',')}}`,
      to: `{${recipients.join(',')}}`,
      from: listOf(mails, `shop@${domain}`),
    })
  }
  const was = (field: keyof (typeof sent)[number]): string[] => sent.map((values) => values[field])
  const each = (expression: string): string =>
    `array(select ${expression} from generate_series(1, ${mails}) as no)`
  const id = `(:prefix || lpad(to_hex(:n::int), 8, '0') || lpad(to_hex(:client_id::int), 4, '0') || lpad(to_hex(no), 8, '0'))::uuid`
  const script = pgbenchScript(captures, {
    variables: {},
    expressions: [
      { sql: each(':project'), was: was('project') },
      { sql: each(':identity'), was: was('identity') },
      { sql: each(':key'), was: was('key') },
      { sql: each(id), was: was('ids') },
      {
        sql: each(`'ada' || :n::int || '-' || :client_id::int || '-' || no || '@example.net'`),
        was: was('to'),
      },
      { sql: each(`'shop@sender' || :client_id::int || '.example.com'`), was: was('from') },
      // These values are the same for all of a project's messages.
      { sql: 'array[:project]', was: captures.map((_, at) => `{${[first, first, second][at]?.projectId}}`) },
    ],
    preamble: [
      '\\set n :n + 1',
      '\\set project :first + mod(:client_id, :senders)',
      '\\set identity :project + :identity_offset',
      '\\set key :project + :key_offset',
    ].join('\n'),
    answers: [],
  })
  return withLargeConstants(postern, script)
}

const isWriting = ({ text }: Statement): boolean =>
  /^(?:begin|start transaction|commit)/i.test(text) || /mail\.usage|insert into mail\./i.test(text)

const listOf = (mails: number, value: number | string): string =>
  `{${Array.from({ length: mails }, () => value).join(',')}}`

async function send(
  { url }: Postern,
  { secret, domain }: Sender,
  sampleMessage: object,
  recipients: string[],
): Promise<string[]> {
  const messages = recipients.map((to) => ({ ...sampleMessage, from: `Shop <shop@${domain}>`, to: [to] }))
  const response = await fetch(`${url}/v1/messages/batch`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages }),
  })
  const { data } = (await response.json()) as { data: { id?: string }[] }
  return data.map((answer) => answer.id ?? refused(answer))
}

function refused(answer: object): never {
  throw new Error(`not accepted: ${JSON.stringify(answer)}`)
}

/** Command-line arguments have a size limit, so each client reads larger values in its first transaction. */
const maxArgumentBytes = 100_000

async function withLargeConstants({ superuser }: Postern, script: PgbenchScript): Promise<PgbenchScript> {
  const isLarge = ([, value]: [string, string]): boolean => value.length > maxArgumentBytes
  const large = Object.entries(script.constants).filter(isLarge)
  if (large.length === 0) return script
  await superuser.query(`
    drop schema if exists bench cascade;
    create schema bench;
    create table bench.constants (name text, value text);
    grant usage on schema bench to postern_mail;
    grant select on bench.constants to postern_mail`)
  for (const [name, value] of large) {
    await superuser.query('insert into bench.constants values ($1, $2)', [name, value])
  }
  const asked = large.map(
    ([name]) => `select value as ${name} from bench.constants where name = '${name}' \\gset`,
  )
  return {
    ...script,
    text: `\\if :n = 0\n${asked.join('\n')}\n\\endif\n${script.text}`,
    constants: Object.fromEntries(Object.entries(script.constants).filter((entry) => !isLarge(entry))),
  }
}
