import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { versionOf } from './checkout.ts'
import { circumstances, spread, table } from './figures.ts'
import { type Journey, openPosternJourney } from './journey-postern.ts'
import { openPostfixJourney } from './journey-postfix.ts'
import { printRatio } from './result.ts'
import { makeSampleMessage } from './sample-message.ts'

/**
 * `npm run bench:journey`: the CPU time of a message's whole journey, from acceptance to the delivery report, compared
 * with Postfix relaying the same message, or with another version of Postern. bench/README.md explains the figures.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    mails: { type: 'string', default: '3000' },
    'warm-up': { type: 'string', default: '1000' },
    senders: { type: 'string', default: '10' },
    bytes: { type: 'string', default: '6000' },
    against: { type: 'string' },
  },
})
const rounds = Number(options.rounds)
const mails = Number(options.mails)
const warmUp = Number(options['warm-up'])

const say = (text: string): void => void process.stdout.write(`${text}\n`)
const total = (cpuMs: Record<string, number>): number => Object.values(cpuMs).reduce((sum, ms) => sum + ms, 0)
const describe = (cpuMs: Record<string, number>): string =>
  `${total(cpuMs).toFixed(2)} ms (${Object.entries(cpuMs)
    .map(([program, ms]) => `${program} ${ms.toFixed(2)}`)
    .join(', ')})`

const sampleMessage = makeSampleMessage(Number(options.bytes))
const senders = Number(options.senders)
const version = options.against === undefined ? undefined : await versionOf(options.against)
const comparison = version
  ? { row: 'S11', rival: `Postern ${version.name}`, goal: { atMost: 1.05 } }
  : { row: 'S10', rival: 'Postfix', goal: { atMost: 3.5 } }

const opened: Journey[] = []
try {
  const ours = await openPosternJourney({ sampleMessage, senders })
  opened.push(ours)
  const theirs = version
    ? await openPosternJourney({ sampleMessage, senders, program: version.program })
    : await openPostfixJourney(sampleMessage)
  opened.push(theirs)
  for (const journey of opened) await journey.travel(warmUp)
  const journeys = { ours, theirs }
  const turns: { ours: Record<string, number>; theirs: Record<string, number> }[] = []
  while (turns.length < rounds) {
    // Each side goes first in every other round, because the speed of a host changes.
    const turn: (typeof turns)[number] = { ours: {}, theirs: {} }
    const order = turns.length % 2 === 0 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const)
    for (const side of order) turn[side] = await journeys[side].travel(mails)
    turns.push(turn)
    say(`Postern ${describe(turn.ours)}; ${comparison.rival} ${describe(turn.theirs)}`)
  }
  const { row, rival, goal } = comparison
  const all = (of: 'ours' | 'theirs'): number[] => turns.map((turn) => total(turn[of]))
  const ratios = turns.map((turn) => total(turn.ours) / total(turn.theirs))
  const each = Object.keys(turns[0]?.ours ?? {}).map((program) => ({
    program,
    ms: spread(
      turns.map(({ ours: cpuMs }) => cpuMs[program] ?? Number.NaN),
      2,
    ),
  }))
  say(`\n${await circumstances(ours.superuser)};`)
  say(
    `${rounds} rounds of ${mails} messages of ${sampleMessage.text.length + sampleMessage.html.length} bytes after a warm-up of ${warmUp}; medians (min–max);`,
  )
  say(`CPU time in ms per message; load average ${loadavg()[0]?.toFixed(1)}.\n`)
  const head = ['', 'Postern and PostgreSQL', ...each.map(({ program }) => program), rival, 'ratio', 'goal']
  const cells = [row, spread(all('ours'), 2), ...each.map(({ ms }) => ms), spread(all('theirs'), 2)]
  say(table(head, [[...cells, spread(ratios, 2), `≤ ${goal.atMost}`]]))
  printRatio(
    row,
    `${spread(all('ours'), 2)} ms against ${spread(all('theirs'), 2)} ms, ratio to ${rival}`,
    ratios,
    goal,
  )
} finally {
  for (const journey of opened) await journey.close()
}
