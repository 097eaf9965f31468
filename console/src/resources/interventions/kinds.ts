import type { Intervention } from '../../api/operations.gen.ts'
import { counted } from '../../components/numbers.ts'
import type { Tone } from '../../components/tone.ts'

export type Kind = Intervention['kind']

interface KindText {
  /** "the lock on Acme". */
  noun: string
  tone: Tone
  /** While it is in force. */
  title: (of: Pick<Intervention, 'pace_per_hour'>) => string
  effect: string
}

const pace = ({ pace_per_hour }: Pick<Intervention, 'pace_per_hour'>): string =>
  `Paced at ${counted(pace_per_hour ?? 0, 'recipient')} per hour`

/** From strict to mild. */
export const kinds: Record<Kind, KindText> = {
  lock: {
    noun: 'lock',
    tone: 'bad',
    title: () => 'This project is locked',
    effect: 'Sending is blocked. Queued mail is held and fails after 7 days.',
  },
  hold: {
    noun: 'hold',
    tone: 'warn',
    title: () => 'The mail of this project is held',
    effect: 'New mail is accepted, but not sent. Queued mail fails after 7 days.',
  },
  pace: {
    noun: 'pace',
    tone: 'warn',
    title: pace,
    effect: 'New mail is accepted and sent slowly. Mail that waits longer than 7 days fails.',
  },
  warn: {
    noun: 'warning',
    tone: 'calm',
    title: () => 'This project has a warning',
    effect: 'Sending is not restricted.',
  },
}

/** From mild to strict, for selects. */
export const kindChoices: { value: Kind; label: string }[] = [
  { value: 'warn', label: 'Warning: notifies the owner; sending is not restricted' },
  { value: 'pace', label: 'Pace: limits the number of recipients per hour' },
  { value: 'hold', label: 'Hold: accepts mail, but does not send it' },
  { value: 'lock', label: 'Lock: accepts and sends no mail' },
]

const order = Object.keys(kinds)

/** The strictest first; of paces, the slowest first, because it applies. */
export const strictestFirst = (interventions: Intervention[]): Intervention[] =>
  interventions.toSorted(
    (one, other) =>
      order.indexOf(one.kind) - order.indexOf(other.kind) ||
      (one.pace_per_hour ?? 0) - (other.pace_per_hour ?? 0),
  )
