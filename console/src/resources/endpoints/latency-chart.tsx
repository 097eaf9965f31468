import { useId, useState } from 'react'
import type { DeliveryAttempt } from '../../api/operations.gen.ts'
import classes from '../../components/chart.module.css'
import { number } from '../../components/numbers.ts'
import { useZone } from '../../components/use-zone.tsx'
import { exactTime } from '../../components/zone.ts'

type Outcome = DeliveryAttempt['outcome']

const outcomes: Record<Outcome, { label: string; colour: string; mark: string }> = {
  delivered: {
    label: 'Delivered',
    colour: '--postern-delivered',
    mark: 'M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0',
  },
  failed: { label: 'Failed', colour: '--postern-bounced', mark: 'M0,-5L5,0L0,5L-5,0Z' },
  given_up: { label: 'Gave up', colour: '--postern-complained', mark: 'M-4,-4H4V4H-4Z' },
  gone: { label: 'Gone', colour: '--postern-complained', mark: 'M0,-5L5,4H-5Z' },
}

const height = 170
const head = 16
const foot = 8

/**
 * The latency of each attempt, oldest first, on a logarithmic scale: a timeout takes a thousand times as long as a
 * successful attempt. Colour and shape show the outcome. Screen readers get the same data as a table.
 */
export function LatencyChart({ title, attempts }: { title: string; attempts: DeliveryAttempt[] }) {
  const [at, setAt] = useState<number>()
  const id = useId()
  const zone = useZone()
  // An event that was abandoned without an attempt has no latency.
  const tried = attempts.filter(({ attempt }) => attempt > 0).toReversed()
  const powers = decades(tried.map(({ latency_ms }) => latency_ms))
  const [lowest = 0, highest = 1] = [powers[0], powers.at(-1)]
  const yOf = (ms: number) =>
    height - foot - ((log(ms) - lowest) / (highest - lowest)) * (height - head - foot)
  const slot = 92 / Math.max(tried.length, 1)
  const xOf = (index: number) => 7 + index * slot
  const hovered = at === undefined ? undefined : tried[at]
  return (
    <figure className={classes.chart} aria-labelledby={id}>
      <figcaption id={id} className={classes.caption}>
        <strong>{title}</strong>
        {hovered ? <Hovered attempt={hovered} /> : <Summary attempts={tried} />}
      </figcaption>
      <svg height={height} aria-hidden="true" onMouseLeave={() => setAt(undefined)}>
        {powers.map((power) => (
          <g key={power}>
            <line x1="0" x2="100%" y1={yOf(10 ** power)} y2={yOf(10 ** power)} className={classes.axis} />
            <text x="0" y={yOf(10 ** power) - 3} className={classes.mark}>
              {formatMs(10 ** power)}
            </text>
          </g>
        ))}
        {tried.map(({ id: attemptId, latency_ms, outcome }, index) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the same figures are in the table below
          <g key={attemptId} onMouseEnter={() => setAt(index)}>
            <rect
              x={`${xOf(index)}%`}
              width={`${slot}%`}
              height={height}
              className={classes.slot}
              data-at={at === index || undefined}
            />
            <svg x={`${xOf(index) + slot / 2}%`} y={yOf(latency_ms)} overflow="visible" aria-hidden="true">
              <path d={outcomes[outcome].mark} fill={`var(${outcomes[outcome].colour})`} />
            </svg>
          </g>
        ))}
      </svg>
      <table className={classes.table}>
        <caption>{title}</caption>
        <thead>
          <tr>
            {['Time', 'Event', 'Outcome', 'Milliseconds'].map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tried.map(({ id: attemptId, created_at, event_type, outcome, latency_ms }) => (
            <tr key={attemptId}>
              <th scope="row">{exactTime(created_at, zone)}</th>
              <td>{event_type}</td>
              <td>{outcomes[outcome].label}</td>
              <td>{latency_ms}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  )
}

function Hovered({ attempt: { created_at, event_type, outcome, latency_ms } }: { attempt: DeliveryAttempt }) {
  const zone = useZone()
  return (
    <>
      <span>{exactTime(created_at, zone)}</span>
      <span>{event_type}</span>
      <Key outcome={outcome} value={`${number(latency_ms)} ms`} />
    </>
  )
}

function Summary({ attempts }: { attempts: DeliveryAttempt[] }) {
  const sorted = attempts.map(({ latency_ms }) => latency_ms).sort((one, other) => one - other)
  const median = sorted[Math.floor(sorted.length / 2)]
  const counts = (Object.keys(outcomes) as Outcome[])
    .map((outcome) => [outcome, attempts.filter((attempt) => attempt.outcome === outcome).length] as const)
    .filter(([, count]) => count > 0)
  return (
    <>
      {median !== undefined && (
        <span>
          Median <b>{number(median)} ms</b>, slowest <b>{number(sorted.at(-1) ?? 0)} ms</b>
        </span>
      )}
      {counts.map(([outcome, count]) => (
        <Key key={outcome} outcome={outcome} value={number(count)} />
      ))}
    </>
  )
}

function Key({ outcome, value }: { outcome: Outcome; value: string }) {
  const { label, colour, mark } = outcomes[outcome]
  return (
    <span className={classes.key}>
      <svg width="12" height="12" viewBox="-6 -6 12 12" aria-hidden="true">
        <path d={mark} fill={`var(${colour})`} />
      </svg>
      {label} <b>{value}</b>
    </span>
  )
}

const log = (ms: number): number => Math.log10(Math.max(1, ms))

/** Powers of ten from below the lowest to above the highest value. */
function decades(latencies: number[]): number[] {
  const logs = latencies.map(log)
  const lowest = Math.floor(Math.min(...logs, 1))
  const highest = Math.max(Math.ceil(Math.max(...logs, 0)), lowest + 2)
  return Array.from({ length: highest - lowest + 1 }, (_, step) => lowest + step)
}

const formatMs = (ms: number): string => (ms >= 1000 ? `${number(ms / 1000)} s` : `${number(ms)} ms`)
