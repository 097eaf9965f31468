import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../../server/src/testing/postgres.ts'
import { circumstances } from '../figures.ts'
import { type Part, type PartName, startPostern } from '../postern.ts'
import { makeSenders } from '../senders.ts'
import { startSink } from '../sink.ts'
import { check, faultsOf, type Promised, type Stored, type Verdict } from './check.ts'
import { killOnAndOn } from './killer.ts'
import { Ledger } from './ledger.ts'
import { type Spoken, startLoad } from './load.ts'
import { startReporter } from './reporter.ts'

/**
 * `npm run prove:kills`: `postern api`, `worker` and `intake` are killed in moments of chance while mail goes through
 * them, and started again. In the end everything that was promised must have arrived. README.md in the folder above
 * says what is checked.
 */
const { values: options } = parseArgs({
  options: {
    kills: { type: 'string', default: '500' },
    seed: { type: 'string' },
    programs: { type: 'string', default: '8' },
    'pause-ms': { type: 'string', default: '150' },
  },
})
const kills = Number(options.kills)
const seed = Number(options.seed ?? Date.now() % 1_000_000_000)
const partNames: readonly PartName[] = ['api', 'worker', 'intake']
// A worker's lease is a minute; what it held is sent by another after that.
const drainMs = 180_000

const say = (text: string): void => void process.stdout.write(`${text}\n`)
say(`${kills} kills, seed ${seed}`)

const [httpPort, intakePort] = [await freePort(), await freePort()]
const environment: Record<string, string> = {
  POSTERN_HTTP_PORT: String(httpPort),
  POSTERN_BOUNCE_PORT: String(intakePort),
}
const postern = await startPostern({ environment })
const received = path.join(postern.directory, 'received')
// As long as a real MTA takes to bring a mail to its disk: a moment in which it has it, and nobody knows.
const sink = await startSink(received, 20)
environment['POSTERN_MTA_HOSTS'] = `smtp://127.0.0.1:${sink.port}`
try {
  const senders = await makeSenders(postern, 4)
  const first: Record<PartName, Part> = {
    api: postern.api,
    worker: await postern.start('worker', { environment }),
    intake: await postern.start('intake', { environment }),
  }
  const ledger = await Ledger.open(path.join(postern.directory, 'promised'))
  const reporter = startReporter(received, intakePort)
  const load = startLoad({
    url: postern.url,
    senders,
    ledger,
    seed,
    programs: Number(options.programs),
    pauseMs: Number(options['pause-ms']),
  })
  const startedAt = performance.now()
  const { inFlight, deaths } = await killAll(first)
  await load.stop()
  const killedFor = (performance.now() - startedAt) / 1000
  await comeToRest(load.spoken, () => reporter.taken() + reporter.refused.length)
  await reporter.stop()
  await ledger.close()

  const verdict = check({
    promised: load.spoken.promised,
    unheard: load.spoken.unheard,
    received: (await sink.read()).map(({ messageId, recipient }) => ({
      id: messageId.split('@')[0] ?? '',
      recipient,
    })),
    stored: await stored(),
    inFlight,
    finalStatuses: ['delivered'],
  })
  const faults = [
    ...faultsOf(verdict),
    ...reporter.refused.map((line) => `report refused: ${line}`),
    ...(await miscounts()),
  ]
  say(`\n${await circumstances(postern.superuser)};`)
  say(
    `seed ${seed}; killed: ${partNames.map((name) => `${name} ${deaths[name]}`).join(', ')}, in ${killedFor.toFixed(0)} s`,
  )
  say(summary(load.spoken, verdict, inFlight))
  for (const fault of faults) say(`FAULT: ${fault}`)
  say(faults.length === 0 ? 'Nothing was lost.' : `${faults.length} kinds of faults.`)
  if (faults.length > 0) process.exitCode = 1
} finally {
  sink.stop()
  await postern.stop()
}

async function killAll(first: Record<PartName, Part>) {
  let left = kills
  const deaths: Record<PartName, number> = { api: 0, worker: 0, intake: 0 }
  const inFlight: Promised[][] = []
  const leases = new Set<string>()
  await Promise.all(
    partNames.map((name, place) =>
      killOnAndOn(first[name], {
        name,
        seed: seed + place,
        livesMs: { least: 100, most: 3000 },
        start: () => postern.start(name, { environment }),
        takeKill: () => left-- > 0,
        async onDeath() {
          deaths[name]++
          if (name === 'worker') inFlight.push(await leased(leases))
          const done = deaths.api + deaths.worker + deaths.intake
          if (done % 50 === 0) say(`${done} kills`)
        },
      }),
    ),
  )
  return { deaths, inFlight }
}

/**
 * Under lease in this moment: the one who had them is dead, and the next one is not yet born. A lease outlives several
 * deaths, and is that of the first of them.
 */
async function leased(known: Set<string>): Promise<Promised[]> {
  const { rows } = await postern.superuser.query<Promised & { attempt: number }>(
    `select message_id as id, recipient, attempt from mail.dispatch where state = 'leased'`,
  )
  return rows.filter(({ id, recipient, attempt }) => {
    const lease = `${id} ${recipient} ${attempt}`
    const isNew = !known.has(lease)
    known.add(lease)
    return isNew
  })
}

/** Nothing is to be sent, and a report was brought for everything that was received. */
async function comeToRest({ promised }: Spoken, reported: () => number): Promise<void> {
  say(`${promised.length} mails were promised; waiting for the last of them`)
  for (const deadline = Date.now() + drainMs; Date.now() < deadline; await sleep(500)) {
    const { rowCount } = await postern.superuser.query('select from mail.dispatch limit 1')
    if (rowCount === 0 && reported() === sink.count()) return
  }
  say(`It did not come to rest in ${drainMs / 1000} s.`)
}

async function stored(): Promise<Stored[]> {
  const { rows } = await postern.superuser.query<Stored>(
    `select recipients.message_id as id, recipients.address as recipient, recipients.status,
            (select coalesce(jsonb_object_agg(type, times), '{}')
               from (select type, count(*) as times from mail.events
                      where events.message_id = recipients.message_id
                        and events.recipient_no = recipients.recipient_no group by type) as told) as events
       from mail.recipients`,
  )
  return rows
}

/** What is counted must be what there is. */
async function miscounts(): Promise<string[]> {
  const { rows } = await postern.superuser.query<Record<string, string>>(
    `select (select count(*) from mail.recipients) as recipients,
            (select sum(accepted) from mail.usage where period = 'day') as "the quota",
            (select sum(sent) from mail.daily) as "the count of sent mail",
            (select sum(delivered) from mail.daily) as "the count of delivered mail",
            (select count(*) + sum(recipient_count - 1) from mail.messages join mail.bodies on message_id = id)
              as "messages with a body"`,
  )
  const { recipients, ...others } = rows[0] ?? {}
  return Object.entries(others).flatMap(([what, count]) =>
    count === recipients ? [] : [`${what} is ${count}, and there are ${recipients} recipients`],
  )
}

function summary(spoken: Spoken, verdict: Verdict, inFlight: Promised[][]): string {
  const { requests, repetitions, refused, unheard } = spoken
  return [
    `requests ${requests}, repeated ${repetitions}, refused ${refused.length}, recipients unheard ${unheard.length}`,
    `promised ${verdict.promised}, received ${verdict.received}, lost ${verdict.lost.length}`,
    `in flight at the kills of a worker ${inFlight.flat().length}, duplicates ${verdict.duplicates}, unexplained ${verdict.unexplainedDuplicates.length}`,
    `sent though the answer was lost ${verdict.sentUnheard} (allowed)`,
    `not final ${verdict.unfinished.length}, told wrongly ${verdict.wronglyTold.length}`,
  ].join('\n')
}
